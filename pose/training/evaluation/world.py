"""Error measures in world coordinates: positions, foot skating and the floor.

`pred` and `true` are (T, J, 3) in metres at 30 frames/s; thresholds of movement per frame assume this rate. The caller
must remove frames without ground truth from both. The functions return values per frame, not means, so that a mean over
several sequences can be a mean over frames.

W-MPJPE, WA-MPJPE, RTE, jitter and foot skating (FS) are defined as in the public code of S. Shin et al., "WHAM" (CVPR
2024), and Z. Shen et al., "GVHMR" (SIGGRAPH Asia 2024). Floor measures follow Y. Yuan et al., "PhysDiff" (ICCV 2023),
with ankles instead of a mesh. The skating measure is therefore called FS-ankle.
"""

import numpy as np
from numpy.typing import NDArray

from pose.structures.alignment import best_rotation
from pose.structures.skeletons import H36M17
from pose.training.evaluation.metrics import MM_PER_M

F64 = NDArray[np.float64]
Points = NDArray[np.floating]
Mask = NDArray[np.bool_]

CHUNK = 100  # frames
ALIGNED_FRAMES = 2  # number of frames at the start of a chunk that determine the alignment of W-MPJPE
MAX_STATIC_STEP_M = 0.010  # m per frame; a foot that truly moves less counts as static
ANKLES = [H36M17.index("left_ankle"), H36M17.index("right_ankle")]


def chunk_errors(pred: Points, true: Points, *, first: int | None = ALIGNED_FRAMES, scale: bool = True) -> F64:
    """Return joint errors (T, J) in mm after aligning each chunk of 100 frames. The last chunk may be shorter.

    Args:
        pred: Predicted joints (T, J, 3) in m.
        true: True joints (T, J, 3) in m.
        first: Number of frames at the start of a chunk that determine the alignment (W-MPJPE); None for all frames
            (WA-MPJPE).
        scale: Whether the alignment includes a scale, which hides errors of body size. Without it the alignment is
            rigid.
    """
    errors = []
    for start in range(0, len(true), CHUNK):
        chunk = slice(start, start + CHUNK)
        fitted = slice(start, start + (CHUNK if first is None else first))
        rotation, factor, translation = fit(pred[fitted].reshape(-1, 3), true[fitted].reshape(-1, 3), scale)
        errors.append(np.linalg.norm(factor * pred[chunk] @ rotation + translation - true[chunk], axis=-1))
    return MM_PER_M * np.concatenate(errors) if errors else np.zeros(true.shape[:2])


def fit(source: Points, target: Points, scale: bool) -> tuple[F64, float, F64]:
    """Fit a rotation, scale and translation from `source` to `target` by least squares.

    Args:
        source: Points (N, 3).
        target: Corresponding points (N, 3).
        scale: Whether to fit a scale; otherwise it is 1.

    Returns:
        Rotation R (3, 3), scale s and translation t (3,), with `s * source @ R + t` close to `target`.
    """
    source_mean, target_mean = source.mean(axis=0, dtype=np.float64), target.mean(axis=0, dtype=np.float64)
    source, target = source - source_mean, target - target_mean
    rotation = best_rotation(source.T.astype(np.float64) @ target)
    size = float((source**2).sum())
    factor = float(((source @ rotation) * target).sum() / size) if scale and size > 0 else 1.0
    return rotation, factor, target_mean - factor * source_mean @ rotation


def root_path_errors(pred: Points, true: Points) -> F64:
    """Return the root translation error (RTE) of each frame, after one rigid alignment of the whole paths.

    Args:
        pred: Predicted root positions (T, 3) in m.
        true: True root positions (T, 3) in m.

    Returns:
        Errors (T,) in percent of the length of the true path; NaN if the true root does not move.
    """
    rotation, factor, translation = fit(pred, true, scale=False)
    length = np.linalg.norm(np.diff(true, axis=0), axis=-1).sum()
    error = np.linalg.norm(factor * pred @ rotation + translation - true, axis=-1)
    return 100 * error / length if length > 0 else np.full(len(true), np.nan)


def jitter(pred: Points, fps: float) -> F64:
    """Return the jitter: the mean over joints of the magnitude of jerk, (T - 3,) in units of 10 m/s^3.

    Args:
        pred: Predicted joints (T, J, 3) in m.
        fps: Frame rate in frames/s.
    """
    result: F64 = np.linalg.norm(np.diff(pred.astype(np.float64), n=3, axis=0), axis=-1).mean(axis=-1) * fps**3 / 10
    return result


def foot_slides(pred: Points, true: Points) -> F64:
    """Return FS-ankle: displacements of the predicted ankles between consecutive frames with a static true ankle.

    Args:
        pred: Predicted left and right ankle (T, 2, 3) in m, at 30 frames/s.
        true: True left and right ankle (T, 2, 3) in m.

    Returns:
        Displacements (N,) in mm, one for each static step of an ankle.
    """
    static = np.linalg.norm(np.diff(true, axis=0), axis=-1) < MAX_STATIC_STEP_M
    result: F64 = MM_PER_M * np.linalg.norm(np.diff(pred.astype(np.float64), axis=0), axis=-1)[static]
    return result


def penetrations(heights: Points) -> F64:
    """Return the depth of the lower sole below the floor, (T,) in mm; 0 if it is above.

    Args:
        heights: Heights of both soles above the floor, (T, 2) in m.
    """
    result: F64 = MM_PER_M * np.maximum(-heights.min(axis=1), 0)
    return result


def floats(heights: Points) -> F64:
    """Return the height of the lower sole above the floor, (T,) in mm; 0 if it is below. Frames of jumps are included.

    Args:
        heights: Heights of both soles above the floor, (T, 2) in m.
    """
    result: F64 = MM_PER_M * np.maximum(heights.min(axis=1), 0)
    return result


def angle_between(a: Points, b: Points) -> float:
    """Return the angle between two vectors (3,) in degrees."""
    cross, dot = np.linalg.norm(np.cross(a, b)), float(np.dot(a, b))
    return float(np.degrees(np.arctan2(cross, dot)))


def f1_counts(pred: Mask, true: Mask) -> NDArray[np.int64]:
    """Return the numbers of true positives, false positives and false negatives, (3,), of two masks of one shape."""
    return np.array([(pred & true).sum(), (pred & ~true).sum(), (~pred & true).sum()])


def f1_score(counts: NDArray[np.int64]) -> float:
    """Return the F1 score, 0 to 1; NaN if neither prediction nor ground truth has positives.

    Args:
        counts: (3,) numbers of true positives, false positives and false negatives, as returned by `f1_counts`.
    """
    hit, false, missed = counts.tolist()
    return 2 * hit / (2 * hit + false + missed) if hit + false + missed else float("nan")


def bone_variation(joints: Points) -> F64:
    """Return the standard deviation over time of each bone length, (16,) in mm, for joints (T, 17, 3) in m."""
    parents, children = np.array(H36M17.edges).T
    lengths = np.linalg.norm(joints[:, children].astype(np.float64) - joints[:, parents], axis=-1)
    result: F64 = MM_PER_M * lengths.std(axis=0)
    return result
