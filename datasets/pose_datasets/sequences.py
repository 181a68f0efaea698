"""The user's own evaluation data: 2D as for `pose-lift`, and ground truth.

The ground truth is an .npz with `joints3d` (T, 17, 3) m in the camera frame, Human3.6M-17 order; frames with NaN have
no ground truth. Several people are (T, P, 17, 3). `root` (T[, P], 3) m is added if `joints3d` is root-relative (so that
results of `pose-lift` can be used), `timestamps` (T,) s belong to the frames of a video, and `intrinsics` (3, 3) px is
its camera.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError, UsageError
from pose.evaluation.metrics import frames_with_truth
from pose.files.keypoints import read_keypoints
from pose.labelled import LabelledSequence, check_metres
from pose.skeletons import H36M17
from pose.system.archives import open_arrays
from pose.types import F32, Array

F64 = NDArray[np.float64]
# Maximum difference of time stamps of the same frames in files of different programs, s.
_SAME_TIME = 2e-3


@dataclass(frozen=True, slots=True)
class Truth:
    """Ground truth.

    Attributes:
        joints: (T, P, 17, 3) m, camera frame, NaN where unknown.
        times: (T,) s.
        intrinsics: (3, 3) px.
    """

    joints: F32
    times: F64 | None
    intrinsics: F64 | None


def load_truth(path: Path) -> Truth:
    """Read and validate a ground truth file.

    Raises:
        UsageError: If it is missing.
        PoseError: If it is invalid.
    """
    arrays = _arrays(path)
    if "joints3d" not in arrays:
        raise PoseError(f"{path}: key 'joints3d' is missing; found: {', '.join(arrays) or 'none'}")
    if arrays["joints3d"].dtype.kind not in "fiu":
        raise PoseError(f"{path}: joints3d holds {arrays['joints3d'].dtype}, expected numbers")
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
    """One person's 2D (see `pose.files.keypoints`) with its ground truth; the key is the file's name."""
    observed, true = read_keypoints(keypoints), load_truth(truth)
    if true.joints.shape[1] != 1:
        raise PoseError(f"{truth}: has {true.joints.shape[1]} people, but {keypoints} has one")
    if len(true.joints) != len(observed):
        raise PoseError(f"{keypoints} has {len(observed)} frames of 2D, {truth} has {len(true.joints)} of 3D")
    if true.times is not None and np.abs(true.times - observed.times).max() > _SAME_TIME:
        raise PoseError(f"{truth}: its timestamps differ from those of {keypoints}")
    joints = true.joints[:, 0]
    counted = frames_with_truth(joints)
    return LabelledSequence(keypoints.stem, keypoints.stem, keypoints.stem, "0", observed, joints, counted)


def load_sequences(keypoints: Path, truth: Path) -> list[LabelledSequence]:
    """Like `load_sequence`; for two folders, each .npz of the first with the equally named one of the second."""
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
