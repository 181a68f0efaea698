"""Evaluation data of users: 2D joints as for `pose-lift`, and ground truth.

The ground truth is an .npz file with `joints3d` (T, 17, 3) m in the camera frame, in the order of Human3.6M-17. Frames
with NaN have no ground truth. For P people the shape is (T, P, 17, 3). Optional arrays are:

- `root` (T[, P], 3) m, added to a root-relative `joints3d`, so that results of `pose-lift` can be used
- `timestamps` (T,) s of the video frames
- `intrinsics` (3, 3) px, the camera matrix
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pose.errors import PoseError, UsageError
from pose.results.keypoints import read_keypoints
from pose.structures.labelled import LabelledSequence, check_metres
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64, Array
from pose.training.evaluation.metrics import frames_with_truth
from pose.utils.archives import open_arrays
from pose.utils.options import REQUIRED, option
from pose_datasets.catalogue import EvaluationTask, LabelledEvaluation, make_benchmark

# Maximum difference of time stamps of the same frames in files of different programs, s.
_MAX_TIME_DIFFERENCE_S = 2e-3


@dataclass(frozen=True, slots=True)
class Truth:
    """Ground truth of P people in T frames."""

    joints: F32  # (T, P, 17, 3) m in the camera frame, NaN where unknown
    times: F64 | None  # (T,) s; None if unknown
    intrinsics: F64 | None  # (3, 3) px, camera matrix; None if unknown


def load_truth(path: Path) -> Truth:
    """Read the ground truth of one or more people; UsageError if the file is missing, PoseError if invalid."""
    arrays = _arrays(path)
    if "joints3d" not in arrays:
        raise PoseError(f"{path}: key 'joints3d' is missing; found: {', '.join(arrays) or 'none'}")
    if arrays["joints3d"].dtype.kind not in "fiu":
        raise PoseError(f"{path}: joints3d: expected numbers, got {arrays['joints3d'].dtype}")
    joints = arrays["joints3d"].astype(np.float64)
    if joints.ndim == 3:
        joints = joints[:, None]
    if joints.ndim != 4 or joints.shape[2:] != (len(H36M17), 3):
        raise PoseError(f"{path}: expected joints3d (T, 17, 3) or (T, P, 17, 3), got {arrays['joints3d'].shape}")
    if "root" in arrays:
        if arrays["root"].size != joints[:, :, 0].size:
            raise PoseError(f"{path}: expected root {joints[:, :, 0].shape}, got {arrays['root'].shape}")
        joints = joints + arrays["root"].astype(np.float64).reshape(*joints.shape[:2], 1, 3)
    try:
        check_metres(joints.reshape(-1, len(H36M17), 3), f"{path}, joints3d")
    except ValueError as error:
        raise PoseError(str(error)) from error
    return Truth(joints.astype(np.float32), _times(arrays, len(joints), path), _lens(arrays, path))


def load_sequence(keypoints: Path, truth: Path) -> LabelledSequence:
    """Load the 2D joints of one person with their ground truth."""
    observed, true = read_keypoints(keypoints), load_truth(truth)
    if true.joints.shape[1] != 1:
        raise PoseError(f"{truth}: has {true.joints.shape[1]} people, but {keypoints} has one")
    if len(true.joints) != len(observed):
        raise PoseError(f"{keypoints} has {len(observed)} frames of 2D, {truth} has {len(true.joints)} of 3D")
    if true.times is not None and np.abs(true.times - observed.times).max() > _MAX_TIME_DIFFERENCE_S:
        raise PoseError(f"{truth}: its timestamps differ from those of {keypoints}")
    joints = true.joints[:, 0]
    counted = frames_with_truth(joints)
    return LabelledSequence(keypoints.stem, keypoints.stem, keypoints.stem, "0", observed, joints, counted)


def load_sequences(keypoints: Path, truth: Path) -> list[LabelledSequence]:
    """Load one sequence from two files, or all from two folders with files of equal names.

    Raises:
        UsageError: If the folders do not match or a file is missing.
        PoseError: If the files are invalid or do not match.
    """
    if not keypoints.is_dir():
        return [load_sequence(keypoints, truth)]
    files = sorted(keypoints.glob("*.npz"))
    if not files:
        raise UsageError(f"{keypoints}: contains no .npz file")
    if not truth.is_dir():
        raise UsageError(f"{truth}: {keypoints} is a folder, so this must be a folder, too")
    return [load_sequence(file, truth / file.name) for file in files]


def _arrays(path: Path) -> dict[str, Array]:
    if not path.is_file():
        raise UsageError(
            f"{path}: no such file; ground truth is an .npz with joints3d (T, 17, 3), see docs/guides/evaluation.md"
        )
    with open_arrays(path) as arrays:
        return dict(arrays)


def _times(arrays: dict[str, Array], frames: int, path: Path) -> F64 | None:
    if "timestamps" not in arrays:
        return None
    times = arrays["timestamps"].astype(np.float64)
    if times.shape != (frames,) or not (np.diff(times) > 0).all():
        raise PoseError(f"{path}: expected timestamps ({frames},) that increase, got {times.shape}")
    return times


def _lens(arrays: dict[str, Array], path: Path) -> F64 | None:
    if "intrinsics" not in arrays:
        return None
    if arrays["intrinsics"].shape != (3, 3):
        raise PoseError(f"{path}: expected intrinsics (3, 3), got {arrays['intrinsics'].shape}")
    return arrays["intrinsics"].astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceEvaluation(LabelledEvaluation):
    """Options of `pose-eval sequence`: files of the user with 2D keypoints and 3D ground truth."""

    keypoints: str = option(REQUIRED, "an .npz in the format of pose-lift, or a folder of them")
    gt: str = option(
        REQUIRED, "an .npz with the ground truth, or a folder of them with the names of the keypoint files"
    )

    def task(self) -> EvaluationTask:
        """Read the sequences and describe the protocol of the evaluation."""
        keypoints, truth = Path(self.keypoints), Path(self.gt)
        sequences = load_sequences(keypoints, truth)
        actions = tuple(sequence.action for sequence in sequences)
        steps = np.concatenate([np.diff(sequence.observed.times) for sequence in sequences])
        fps = float(1 / np.median(steps)) if len(steps) else 1.0
        benchmark = make_benchmark(truth.name, "", "given", sequences, "frames", actions)
        return EvaluationTask(sequences, benchmark, fps, keypoints.stem)
