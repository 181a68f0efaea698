"""What is handed in from outside, held to the units that the stages count on: pixels, seconds, RGB uint8.

Numbers in other units would be taken without a word and come out as nonsense: what cannot be right is an error, what
is hardly right a `PoseWarning`.
"""

import math
import warnings

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseWarning, UsageError
from pose.types import F32, Frame

LARGEST_NORMALISED = 2.0  # px; nobody is so small and so near the corner in every frame
SLOWEST = 1.0  # s from frame to frame; frame numbers and milliseconds are at least as far apart
FRAMES_TO_JUDGE = 4


class IncomingFrames:
    """The frames of one session: pictures of one size at increasing times.

    size: (width, height) px.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        self._size = size
        self._last, self._number = -math.inf, 0
        self._slow = 0  # frames in a row that follow the one before too late

    def check(self, frame: Frame) -> None:
        """Raises UsageError for a picture of another form or size, or a time that does not come after the last."""
        image = frame.image
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
            raise UsageError(f"frame {frame.index}: expected (H, W, 3) uint8 RGB, got {image.shape} {image.dtype}")
        if frame.size != self._size:
            want, got = (f"{width} x {height} px" for width, height in (self._size, frame.size))
            raise UsageError(f"frame {frame.index}: is {got}, its session was made for {want}; begin another session")
        step = frame.time - self._last
        if not math.isfinite(frame.time) or step <= 0:
            before = f" after {self._last:g} s" if math.isfinite(self._last) else ""
            raise UsageError(f"frame {frame.index}: time {frame.time:g} s{before}; expected seconds that increase")
        step /= max(1, frame.index - self._number)  # a busy machine drops those between
        self._last, self._number = frame.time, frame.index
        self._slow = self._slow + 1 if SLOWEST <= step < math.inf else 0
        if self._slow == FRAMES_TO_JUDGE:
            warnings.warn(_too_slow(step), PoseWarning, stacklevel=4)


def check_units(
    keypoints: F32, scores: F32, times: NDArray[np.float64], image_size: tuple[int, int], where: str = ""
) -> None:
    """Hold one person's keypoints (T, J, 2), with scores (T, J), times (T,) and a (width, height) to px and seconds.

    Raises ValueError for keypoints in 0 to 1. Warns of times that look like frame numbers or milliseconds, and of
    keypoints most of which lie outside the picture; where: what the warnings begin with.
    """
    seen = keypoints[scores > 0]
    size = np.array(image_size)
    if len(seen) and size.min() > 4 * LARGEST_NORMALISED and np.abs(seen).max() <= LARGEST_NORMALISED:
        raise ValueError(
            f"keypoints: all lie within {LARGEST_NORMALISED:g} px of the corner; "
            f"expected px, so multiply relative coordinates by {size[0]} and {size[1]}"
        )
    outside = ((seen < -0.5) | (seen > size - 0.5)).any(axis=-1)
    if outside.sum() > len(seen) / 2:
        message = f"keypoints: {outside.mean():.0%} lie outside the picture of {size[0]} x {size[1]} px (image_size)"
        warnings.warn(where + message, PoseWarning, stacklevel=3)
    if len(times) >= FRAMES_TO_JUDGE and (step := float(np.median(np.diff(times)))) >= SLOWEST:
        warnings.warn(where + _too_slow(step), PoseWarning, stacklevel=3)


def _too_slow(step: float) -> str:
    return f"times: frames are {step:g} s apart; expected seconds, not frame numbers or milliseconds"
