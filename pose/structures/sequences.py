"""Sequences of one person: input and output of a lifter, training batches, and their mirror images.

In shapes, B is the number of sequences, T of frames and J of joints. Axes and units are those of
`pose.structures.types`.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pose.structures.camera import Camera
from pose.structures.columns import check_shape
from pose.structures.skeletons import H36M17, get_skeleton
from pose.structures.types import F32

_SIDES = np.array([-1, 1, 1], np.float32)


@dataclass(frozen=True, slots=True)
class Sequence2D:
    """One person in T frames in 2D, with J keypoints."""

    keypoints: F32  # (T, J, 2) px
    scores: F32  # (T, J) confidence; 0 for undetected keypoints
    times: NDArray[np.float64]  # (T,) float64 s, strictly increasing
    camera: Camera  # camera that recorded the person
    skeleton: str  # name of the skeleton in `pose.structures.skeletons.SKELETONS`

    def __post_init__(self) -> None:
        for name, dtype in (("keypoints", np.float32), ("scores", np.float32), ("times", np.float64)):
            object.__setattr__(self, name, _numbers(f"Sequence2D.{name}", getattr(self, name), dtype))
        for name, kind in (("camera", Camera), ("skeleton", str)):
            if not isinstance(value := getattr(self, name), kind):
                raise ValueError(f"Sequence2D.{name}: expected a {kind.__name__}, got {type(value).__name__}")
        if self.scores.ndim != 2:
            raise ValueError(f"Sequence2D.scores: expected shape (T, J), got {self.scores.shape}")
        t, j = self.scores.shape
        check_shape(self, "keypoints", (t, j, 2))
        check_shape(self, "times", (t,))
        if not np.isfinite(self.times).all() or not (np.diff(self.times) > 0).all():
            raise ValueError("Sequence2D.times: time stamps must increase strictly")

    def __len__(self) -> int:
        return len(self.times)

    def __getitem__(self, frames: slice) -> Self:
        """Return a slice of the frames, with the same camera. The arrays are views."""
        return replace(self, keypoints=self.keypoints[frames], scores=self.scores[frames], times=self.times[frames])


@dataclass(frozen=True, slots=True)
class Sequence3D:
    """One person in T frames in 3D, joints of Human3.6M-17; lifters return the camera frame."""

    joints: F32  # (T, 17, 3) m, relative to the pelvis
    root: F32  # (T, 3) m, position of the pelvis in the coordinate frame
    sigma: F32  # (T, 17) mm, radius around each joint that contains the true joint with a probability of 68 %
    times: NDArray[np.float64]

    def __post_init__(self) -> None:
        t = len(self.times)
        check_shape(self, "joints", (t, 17, 3))
        check_shape(self, "root", (t, 3))
        check_shape(self, "sigma", (t, 17))

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True, slots=True)
class LiftBatch:
    """B sequences of T frames with ground truth 3D, for training and evaluation of lifters."""

    keypoints: F32  # (B, T, 17, 2) px, Human3.6M-17 as returned by `pose.structures.skeletons.to_h36m17`
    scores: F32  # (B, T, 17) confidence; 0 for undetected keypoints
    derived: NDArray[np.bool_]  # (B,) True if the five trunk and head joints were derived from a detector's skeleton
    times: NDArray[np.float64]  # (B, T) s, increasing
    valid: NDArray[np.bool_]  # (B, T) False for padding after the end of a sequence
    intrinsics: NDArray[np.float64]  # (B, 3, 3) px, camera intrinsics that the model receives
    intrinsics_known: NDArray[np.bool_]  # (B,) False if the intrinsics follow from the assumed field of view
    image_size: F32  # (B, 2) px, width and height
    joints: F32  # (B, T, 17, 3) m, relative to the pelvis, in camera axes (x right, y down, z forward)
    # (B, T, 3) m, position of the pelvis in the camera frame. With assumed intrinsics its depth is scaled by assumed /
    # true focal length, so that it projects to the same pixels.
    root: F32


def _numbers(name: str, values: object, dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of a dtype; the same object if it has it already."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:  # for example rows of different lengths
        raise ValueError(f"{name}: expected an array of numbers") from error
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name}: expected numbers, got {array.dtype}")
    return array.astype(dtype, copy=False)


def straightened(sequence: Sequence2D) -> Sequence2D:
    """Return the 2D sequence as a camera without distortion of the lens sees it."""
    if not sequence.camera.distorted:
        return sequence
    keypoints = sequence.camera.undistort(sequence.keypoints).astype(np.float32)
    return replace(sequence, keypoints=keypoints, camera=sequence.camera.straight)


def mirror_observations(sequence: Sequence2D) -> Sequence2D:
    """Return the 2D sequence of the mirrored image: left and right joints swapped, and intrinsics mirrored."""
    order = list(get_skeleton(sequence.skeleton).flip_order)
    keypoints = sequence.keypoints[:, order] * _SIDES[:2]
    keypoints[..., 0] += sequence.camera.size[0] - 1
    return replace(sequence, keypoints=keypoints, scores=sequence.scores[:, order], camera=sequence.camera.mirrored())


def mirror_poses(poses: F32) -> F32:
    """Mirror poses (..., 17, 3) in the camera frame. x is negated, and left and right joints are swapped."""
    return poses[..., list(H36M17.flip_order), :] * _SIDES


def mirror_lifted(lifted: Sequence3D) -> Sequence3D:
    """Convert the output of a lifter for a mirrored image to that for the original image, or vice versa."""
    sigma = lifted.sigma[:, list(H36M17.flip_order)]
    return Sequence3D(mirror_poses(lifted.joints), lifted.root * _SIDES, sigma, lifted.times)
