"""Sequences with ground truth: output of benchmark readers, input of evaluation and training."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.sequences import Sequence2D
from pose.types import F32, F64

# Bounds of the distance from the pelvis to the furthest joint in m: wide enough for people and poor predictions, and
# narrow enough to detect other units.
_SMALLEST_REACH, _LARGEST_REACH = 0.1, 10.0
# Minimum of the longer side around a person in px: too small to be lifted, but far above coordinates of -1 to 1.
_SMALLEST_EXTENT = 5.0


@dataclass(frozen=True, slots=True)
class ImageSpace:
    """Human3.6M's "2.5D" space: pixels and pixel-sized depth, scaled to the size of millimetres.

    Attributes:
        factor: (T,) mm per pixel at the pelvis, from the ground truth of every frame.
        focal: (2,) px.
        centre: (2,) px.
    """

    factor: F64
    focal: F64
    centre: F64

    def from_camera(self, poses: NDArray[np.floating]) -> F64:
        """Convert (T, 17, 3) m in the camera frame to this space, in metres.

        The predicted depth of each frame determines the pixel scale, so a person predicted at twice the size and twice
        the distance is the same person here.
        """
        image = to_image_space(poses, self.focal, self.centre)
        return image * (self.factor[:, None, None] / 1000)


def to_image_space(poses: NDArray[np.floating], focal: F64, centre: F64) -> F64:
    """Convert (T, 17, 3) m in the camera frame to (T, 17, 3) px: pinhole projection, and depth relative to the pelvis.

    Depth is scaled by the width in pixels of a rectangle of 2000 mm at the pelvis, plus one, over 2000, as in the
    public Human3.6M image-space labels (whose factor is the inverse).
    """
    depth = poses[..., 2:]
    pelvis = depth[:, :1]
    scale = focal[0] / (1000 * pelvis) + 1 / 2000
    return np.concatenate([poses[..., :2] / depth * focal + centre, 1000 * scale * (depth - pelvis)], axis=-1)


@dataclass(frozen=True, slots=True)
class LabelledSequence:
    """One person seen by one camera, with ground truth.

    Attributes:
        key: Unique in its data set, such as `S9/Directions 1/54138969`; predictions are stored under it.
        subject: Name of the subject.
        action: Group that is averaged first.
        camera: Name of the camera.
        observed: Input of a lifter.
        truth: (T, 17, 3) m, camera frame, with or without the global position; in `image_space` if that is given.
        counted: (T,) False without ground truth or if the protocol omits the frame.
        image_space: Space of `truth`; None for the camera frame.
        clips: Slices that a lifter sees one at a time; empty for the whole sequence.
    """

    key: str
    subject: str
    action: str
    camera: str
    observed: Sequence2D
    truth: F32
    counted: NDArray[np.bool_]
    image_space: ImageSpace | None = None
    clips: tuple[slice, ...] = ()

    def __post_init__(self) -> None:
        frames = len(self.observed)
        if self.truth.shape != (frames, 17, 3) or self.counted.shape != (frames,):
            raise ValueError(
                f"{self.key}: {frames} frames of 2D need ground truth ({frames}, 17, 3), got {self.truth.shape}, "
                f"and counted ({frames},), got {self.counted.shape}"
            )

    def __len__(self) -> int:
        return len(self.observed)


def check_metres(poses: NDArray[np.floating], source: str) -> None:
    """Raise ValueError, naming `source`, if (T, J, 3) poses cannot be people in metres. NaN frames are ignored."""
    known = poses[np.isfinite(poses).all(axis=(1, 2))]
    if not len(known):
        return
    reach = float(np.median(np.linalg.norm(known - known[:, :1], axis=-1).max(axis=-1)))
    if _SMALLEST_REACH <= reach <= _LARGEST_REACH:
        return
    guess = ": these look like millimetres" if _SMALLEST_REACH <= reach / 1000 <= _LARGEST_REACH else ""
    raise ValueError(
        f"{source}: expected metres, but the person's furthest joint is {reach:.3g} from the pelvis (median){guess}"
    )


def check_pixels(keypoints: NDArray[np.floating], source: str) -> None:
    """Raise ValueError, naming `source`, if (T, J, 2) keypoints cannot be people in pixels."""
    if not len(keypoints):
        return
    extent = float(np.median(np.ptp(keypoints, axis=1).max(axis=-1)))
    if extent < _SMALLEST_EXTENT:
        raise ValueError(f"{source}: expected pixels, but the person is {extent:.3g} px large (median)")
