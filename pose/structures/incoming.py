"""Validation of the units of external input: pixels, seconds, RGB uint8.

Input in other units would silently produce meaningless results. Impossible values raise an error, unlikely values a
`PoseWarning`.
"""

import math
import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseWarning, UsageError
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import SKELETONS
from pose.structures.types import F32, Frame
from pose.utils.shown import shown

MAX_NORMALISED_PX = 2.0  # keypoints that are all closer to the image's corner are relative coordinates
MAX_FRAME_STEP_S = 1.0  # times that are farther apart are frame numbers or milliseconds
MIN_FRAMES_TO_JUDGE = 4
MAX_ABS_PX = 1e6  # maximum absolute value of a keypoint coordinate


class IncomingFrames:
    """Checker of the frames of one session, which must be images of one size at increasing times."""

    def __init__(self, size: tuple[int, int]) -> None:
        """Start before the first frame, for images of (width, height) px."""
        self._size = size
        self._last, self._index = -math.inf, 0
        self._slow = 0  # consecutive frames with too large a step

    def check(self, frame: Frame) -> None:
        """Check the next frame (UsageError), and warn if times are too far apart for seconds."""
        image = frame.image
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
            raise UsageError(f"frame {frame.index}: expected (H, W, 3) uint8 RGB, got {image.shape} {image.dtype}")
        if frame.size != self._size:
            want, got = (f"{width} x {height} px" for width, height in (self._size, frame.size))
            raise UsageError(f"frame {frame.index}: got {got}, but the session expects {want}; create another session")
        step = frame.time - self._last
        if not math.isfinite(frame.time) or step <= 0:
            before = f" after {self._last:g} s" if math.isfinite(self._last) else ""
            raise UsageError(f"frame {frame.index}: time {frame.time:g} s{before}; expected seconds that increase")
        step /= max(1, frame.index - self._index)  # a busy machine drops the frames in between
        self._last, self._index = frame.time, frame.index
        self._slow = self._slow + 1 if MAX_FRAME_STEP_S <= step < math.inf else 0
        if self._slow == MIN_FRAMES_TO_JUDGE:
            warnings.warn(_too_slow(step), PoseWarning, stacklevel=4)


def checked_keypoints(sequence: Sequence2D) -> Sequence2D:
    """Check the keypoints of one person from outside, and set those with score 0, which may be NaN, to 0.

    Raises:
        ValueError: If there is no frame, the skeleton is unknown or has another number of keypoints, a score is not
            within 0 to 1, or a keypoint with a score is not finite or not in px.
    """
    keypoints, scores, name = sequence.keypoints, sequence.scores, sequence.skeleton
    if name not in SKELETONS:
        raise ValueError(f"skeleton: unknown name {shown(name, 40)!r}; known: {', '.join(SKELETONS)}")
    if scores.shape[1] != len(SKELETONS[name]):
        raise ValueError(f"keypoints: {name} has {len(SKELETONS[name])} keypoints, got {scores.shape[1]}")
    if len(scores) == 0:
        raise ValueError("keypoints: contain no frame")
    wrong = ~((scores >= 0) & (scores <= 1))
    if wrong.any():
        frame, joint = np.argwhere(wrong)[0]
        raise ValueError(f"scores: must lie in 0 to 1, got {scores[frame, joint]:g} in frame {frame}, joint {joint}")
    undetected = scores == 0
    if not np.isfinite(keypoints[~undetected]).all():
        frame, joint = np.argwhere(~np.isfinite(keypoints).all(axis=2) & ~undetected)[0]
        raise ValueError(
            f"keypoints: NaN or infinity in frame {frame}, joint {joint}; give score 0 to joints that are not seen"
        )
    keypoints = np.where(undetected[..., None], np.float32(0), keypoints)
    if (np.abs(keypoints) > MAX_ABS_PX).any():
        raise ValueError(f"keypoints: beyond {MAX_ABS_PX:g} px; expected pixel coordinates")
    return replace(sequence, keypoints=keypoints)


def check_units(
    keypoints: F32, scores: F32, times: NDArray[np.float64], image_size: tuple[int, int], prefix: str = ""
) -> None:
    """Check that keypoints (T, J, 2) are in px and times (T,) in seconds; those with score 0 are ignored.

    Warns if times look like frame numbers or milliseconds, or if most keypoints lie outside the image. If all lie
    within 2 px of the image's corner, as relative coordinates from 0 to 1 do, that is a ValueError.
    """
    detected = keypoints[scores > 0]
    size = np.array(image_size)
    if len(detected) and size.min() > 4 * MAX_NORMALISED_PX and np.abs(detected).max() <= MAX_NORMALISED_PX:
        raise ValueError(
            f"keypoints: all lie within {MAX_NORMALISED_PX:g} px of the corner; "
            f"expected px, so multiply relative coordinates by {size[0]} and {size[1]}"
        )
    outside = ((detected < -0.5) | (detected > size - 0.5)).any(axis=-1)
    if outside.sum() > len(detected) / 2:
        message = f"keypoints: {outside.mean():.0%} lie outside the picture of {size[0]} x {size[1]} px (image_size)"
        warnings.warn(prefix + message, PoseWarning, stacklevel=3)
    if len(times) >= MIN_FRAMES_TO_JUDGE and (step := float(np.median(np.diff(times)))) >= MAX_FRAME_STEP_S:
        warnings.warn(prefix + _too_slow(step), PoseWarning, stacklevel=3)


def _too_slow(step: float) -> str:
    return f"times: frames are {step:g} s apart; expected seconds, not frame numbers or milliseconds"
