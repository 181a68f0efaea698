"""What tells a front from a back besides the sides themselves: how often it speaks, and how often it is right.

    python benchmarks/side_evidence.py --shared ../shared --mocap cmu.npz,ui-prmd.npz

In the clips, for each network (benchmarks/detector_errors.py) and each frame in which it has swapped no limbs itself:

- `face`: `pose.lifting.repair.facing`. `feet`: toes below their heels say that a person faces the camera.

For recorded people before virtual cameras, of `--part`:

- `motion`: who grows in the image by 10 to 50 % within 3 s comes towards the camera, and walks forwards.
- `sigma`: the offline lifter is more certain of a window of 2 s than of the same with left and right swapped; it speaks
  where the mean logarithms of sigma differ by more than 0.05.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from detector_errors import CLIPS, NETWORKS, watch_all
from numpy.typing import NDArray
from pose_datasets.mocap import Clip, load_clips, split
from pose_datasets.synthesis import evaluation_batches
from pose_datasets.training import is_ui_prmd
from repair import of_networks, rows_of

from pose.lifting.repair.facing import MAX_SCORE_DIFFERENCE, MIN_SIDE_DISTANCE, face_agreement
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import H36M17, get_skeleton
from pose.training.measure import lift_batch

F64 = NDArray[np.float64]

SPEAKS = 0.3 * MAX_SCORE_DIFFERENCE / 2  # of the face and the feet, from -MAX_SCORE_DIFFERENCE to MAX_SCORE_DIFFERENCE
LEVEL, SCALE = (
    0.025,
    0.1,
)  # of the person's size: toes below heels, level with them in the image, and as far as `MAX_SCORE_DIFFERENCE`
MIN_SIGMA_GAIN = 0.05


def faces(sequence: Sequence2D) -> F64:
    """(T,) from -MAX_SCORE_DIFFERENCE to MAX_SCORE_DIFFERENCE."""
    skeleton = get_skeleton(sequence.skeleton)
    frames = zip(sequence.keypoints, sequence.scores, strict=True)
    return np.array([face_agreement(xy[None], scores[None], skeleton) for xy, scores in frames])


def feet(sequence: Sequence2D) -> F64:
    """(T,) from -MAX_SCORE_DIFFERENCE to MAX_SCORE_DIFFERENCE; 0 for a skeleton without heels."""
    skeleton = get_skeleton(sequence.skeleton)
    if "left_heel" not in skeleton.names:
        return np.zeros(len(sequence))
    xy = {name: sequence.keypoints[:, skeleton.index(name)].astype(float) for name in skeleton.names}
    size = np.maximum(np.ptp(sequence.keypoints, axis=1).max(axis=-1), 1)
    below = sum(xy[f"{side}_foot_index"][:, 1] - xy[f"{side}_heel"][:, 1] for side in ("left", "right")) / 2 / size
    facing = np.clip((below - LEVEL) / SCALE, -1, 1) * MAX_SCORE_DIFFERENCE
    return facing * _side(sequence)


def _side(sequence: Sequence2D) -> F64:
    """(T,) 1 where the left is on the right of the image, -1 where it is on the left, 0 where they are close."""
    skeleton = get_skeleton(sequence.skeleton)
    place = {(side, part): sequence.keypoints[:, skeleton.index(f"{side}_{part}")].astype(float)
             for side in ("left", "right") for part in ("shoulder", "hip")}  # fmt: skip
    upper, lower = ((place["left", part] + place["right", part]) / 2 for part in ("shoulder", "hip"))
    trunk = np.maximum(np.linalg.norm(upper - lower, axis=-1), 1)
    width = sum(place["left", part][:, 0] - place["right", part][:, 0] for part in ("shoulder", "hip")) / 2 / trunk
    return np.sign(width) * (np.abs(width) > MIN_SIDE_DISTANCE)


def row(label: str, evidence: F64, speaks: float) -> str:
    loud = evidence[np.abs(evidence) > speaks]
    right = f"{100 * (loud > 0).mean():.0f} %" if len(loud) else "-"
    return f"| {label} | {len(evidence)} | {100 * len(loud) / max(len(evidence), 1):.0f} % | {right} |"


def of_clips(shared: Path) -> list[str]:
    tracks, rows = watch_all(shared), []
    for clip in CLIPS:
        own = of_networks([track for track in tracks if track.name == clip], native=True)
        for name in NETWORKS:
            for label, evidence in (("face", faces), ("feet", feet)):
                found = [evidence(sequence)[~swapped.any(axis=1)] for sequence, swapped in own[name]]
                rows.append(row(f"{label}, {name}, {clip}", np.concatenate(found), SPEAKS))
    return rows


def approaches(sequence: Sequence2D) -> list[float]:
    """For windows of 3 s, one a second: 1 where a person grows and faces the camera or shrinks and does not, -1, 0."""
    bones = [(8, 0), (1, 2), (2, 3), (4, 5), (5, 6)]
    xy = sequence.keypoints
    size = np.log(np.maximum(sum(np.linalg.norm(xy[:, a] - xy[:, b], axis=-1) for a, b in bones), 1))
    side, says = _side(sequence), []
    for start in range(0, len(xy) - 90, 30):
        growth = float(np.median(size[start + 60 : start + 90]) - np.median(size[start : start + 30]))
        says.append(np.sign(growth) * np.median(side[start : start + 90]) * (0.1 < abs(growth) < 0.4))
    return says


def of_people(clips: list[Clip], condition: str) -> tuple[F64, F64]:
    """Motion and sigma, one number for each window."""
    network, flip = TorchLifter.load("offline").network, np.array(H36M17.flip_order)
    motion: list[float] = []
    gains: list[float] = []
    for batch in evaluation_batches(clips, condition=condition):
        right = lift_batch(network, batch).sigma.numpy()
        swapped = replace(batch, keypoints=batch.keypoints[:, :, flip], scores=batch.scores[:, :, flip])
        doubt = np.log(lift_batch(network, swapped).sigma.numpy()) - np.log(right)
        for sequence, gain in zip(rows_of(batch), doubt.mean(axis=-1), strict=True):
            motion += approaches(sequence)
            starts = range(0, max(len(sequence) - 60, 0) + 1, 30)
            gains += [float(gain[: len(sequence)][start : start + 60].mean()) for start in starts]
    return np.array(motion), np.array(gains)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--mocap", required=True, help="the files that pose-prepare wrote, separated by commas")
    parser.add_argument("--part", default="test", help="train, validation or test")
    parser.add_argument("--every", type=int, default=4, help="only every n-th recorded clip")
    options = parser.parse_args()
    print("| evidence | frames or windows | speaks in | is right |\n|---|---|---|---|")
    clips = split([clip for path in options.mocap.split(",") for clip in load_clips(Path(path))], options.part)
    for name, ours in (("CMU", False), ("UI-PRMD", True)):
        people = [clip for clip in clips if is_ui_prmd(clip) == ours][:: options.every]
        for condition, label in (("gt", "exact"), ("detector", "a detector's")):
            motion, gains = of_people(people, condition)
            print(row(f"motion, {name}, {label}", motion, 0))
            print(row(f"sigma, {name}, {label}", gains, MIN_SIGMA_GAIN))
    print("\n".join(of_clips(options.shared)))


if __name__ == "__main__":
    main()
