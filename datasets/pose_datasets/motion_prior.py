"""Linear Gaussian model of the directions of all bones during 2 s, from motion capture of the training subjects.

    python -m pose_datasets.motion_prior --mocap cmu.npz,ui-prmd.npz --out pose/models/motion.npz

It predicts bones without a sensor from those with one (`pose.body.imu.mounting`).
"""

import argparse
from pathlib import Path

import numpy as np

from pose.body.imu.mounting import HEADING_LEFT, LAGS_S, heading_axes
from pose.structures.skeletons import H36M17
from pose.structures.types import F64
from pose.utils.archives import write_arrays
from pose_datasets.mocap import Clip, load_clips, split
from pose_datasets.sampling import clip_weights, resample

_FPS = 10.0
_FACTORS = 128
_UP = np.array([0.0, 1.0, 0.0])
_MIRROR = [H36M17.edges.index((H36M17.flip_order[a], H36M17.flip_order[b])) for a, b in H36M17.edges]


def windows(clip: Clip) -> F64:
    """Return directions (N, L, 16, 3) of a clip at the lags of the model, in axes of the heading, and mirrored ones."""
    points = resample(clip, _FPS)[0][:, :17].astype(np.float64)
    starts, ends = np.array(H36M17.edges).T
    along = points[:, ends] - points[:, starts]
    along /= np.maximum(np.linalg.norm(along, axis=-1, keepdims=True), 1e-6)
    reach = round(LAGS_S[-1] * _FPS)
    lags = np.round(LAGS_S * _FPS).astype(int)
    middles = np.arange(reach, len(points) - reach)
    axes = heading_axes(points[middles][:, HEADING_LEFT[0]] - points[middles][:, HEADING_LEFT[1]], _UP)
    turned = np.einsum("tca,tlba->tlbc", axes, along[middles[:, None] + lags])
    return np.concatenate([turned, turned[:, :, _MIRROR] * [-1, 1, 1]])


def model_of(clips: list[Clip], factors: int = _FACTORS) -> dict[str, F64]:
    """Return mean (D,), factors (D, R) and the standard deviation of the rest, by the probabilistic PCA of windows."""
    # Tipping and Bishop, "Probabilistic principal component analysis", 1999.
    size = len(LAGS_S) * len(H36M17.edges) * 3
    total, mean, square = 0.0, np.zeros(size), np.zeros((size, size))
    for clip, weight in zip(clips, clip_weights(clips, equal_laboratories=True), strict=True):
        rows = windows(clip)
        if len(rows):
            flat = rows.reshape(len(rows), -1)
            total += weight
            mean += weight * flat.mean(axis=0)
            square += weight * (flat.T @ flat) / len(flat)
    mean /= total
    values, vectors = np.linalg.eigh(square / total - np.outer(mean, mean))
    rest = float(np.maximum(values[:-factors], 0).mean())
    scale = np.sqrt(np.maximum(values[-factors:] - rest, 0))
    return {"mean": mean, "factors": vectors[:, -factors:] * scale, "rest": np.array(np.sqrt(rest))}


def main() -> None:
    """Fit the model and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    clips = [clip for path in given.mocap.split(",") for clip in split(load_clips(Path(path)), "train")]
    write_arrays(given.out, {name: values.astype(np.float16) for name, values in model_of(clips).items()})


if __name__ == "__main__":
    main()
