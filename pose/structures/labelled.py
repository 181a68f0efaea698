"""Sequences with ground truth, which benchmark readers return and evaluation and training use."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.sequences import Sequence2D
from pose.structures.types import F32, F64

# Bounds in m of the distance from the pelvis to the furthest joint. They accept people and poor predictions, but detect
# other units.
_MIN_REACH_M, _MAX_REACH_M = 0.1, 10.0
# Minimum of the longer side of a person's bounding box in px. Smaller people cannot be lifted; normalised coordinates
# from -1 to 1 are far below.
_MIN_EXTENT_PX = 5.0


@dataclass(frozen=True, slots=True)
class ImageSpace:
    """The "2.5D" space of Human3.6M: pixel coordinates and a depth in pixels, scaled to metric size."""

    factor: F64  # (T,) mm per pixel at the pelvis, from the ground truth of each frame
    focal: F64  # (2,) px, focal lengths
    centre: F64  # (2,) px, principal point

    def from_camera(self, poses: NDArray[np.floating]) -> F64:
        """Convert poses (T, 17, 3) m in the camera frame to `to_image_space`, scaled to metres by `factor`.

        The predicted depth of each frame determines the pixel scale. A person predicted at twice the size and twice the
        distance therefore has the same coordinates in this space.
        """
        image = to_image_space(poses, self.focal, self.centre)
        return image * (self.factor[:, None, None] / 1000)


def to_image_space(poses: NDArray[np.floating], focal: F64, centre: F64) -> F64:
    """Convert poses (T, 17, 3) m from the camera frame to px, with depth relative to the pelvis."""
    # Depth in mm is multiplied by (w + 1) / 2000, where w is the width in pixels of a rectangle 2000 mm wide at the
    # pelvis. The public Human3.6M image-space labels have the inverse factor.
    depth = poses[..., 2:]
    pelvis = depth[:, :1]
    scale = focal[0] / (1000 * pelvis) + 1 / 2000
    return np.concatenate([poses[..., :2] / depth * focal + centre, 1000 * scale * (depth - pelvis)], axis=-1)


@dataclass(frozen=True, slots=True)
class LabelledSequence:
    """One person seen by one camera in T frames, with ground truth."""

    # Name that is unique in the data set, such as `S9/Directions 1/54138969`. Predictions are stored under this name.
    key: str
    subject: str
    action: str  # name of the action. Errors are averaged within each action first, then over the actions
    camera: str
    observed: Sequence2D  # 2D sequence, the input of a lifter
    # (T, 17, 3) m in the camera frame, or in `image_space` if that is given. Positions are absolute or relative to the
    # pelvis.
    truth: F32
    counted: NDArray[np.bool_]  # (T,) False for frames without ground truth, and for frames that the protocol omits
    image_space: ImageSpace | None = None  # space of `truth`; None for the camera frame
    # Slices of frames that are lifted separately; empty to lift the whole sequence at once.
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
    """Check that poses (T, J, 3), pelvis first, are of people in metres; otherwise ValueError. NaN is ignored."""
    known = poses[np.isfinite(poses).all(axis=(1, 2))]
    if not len(known):
        return
    reach = float(np.median(np.linalg.norm(known - known[:, :1], axis=-1).max(axis=-1)))
    if _MIN_REACH_M <= reach <= _MAX_REACH_M:
        return
    guess = ": these look like millimetres" if _MIN_REACH_M <= reach / 1000 <= _MAX_REACH_M else ""
    raise ValueError(
        f"{source}: expected metres, but the person's furthest joint is {reach:.3g} from the pelvis (median){guess}"
    )


def check_pixels(keypoints: NDArray[np.floating], source: str) -> None:
    """Check that keypoints (T, J, 2) are not too close together for people in pixels; otherwise ValueError."""
    if not len(keypoints):
        return
    extent = float(np.median(np.ptp(keypoints, axis=1).max(axis=-1)))
    if extent < _MIN_EXTENT_PX:
        raise ValueError(f"{source}: expected pixels, but the person is {extent:.3g} px large (median)")
