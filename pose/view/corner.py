"""Choice of the image corner in which the 3D inset of the overlay lies."""

import cv2
import numpy as np

from pose.structures.types import F32, U8, FrameResult
from pose.video.planes import Area
from pose.view.insets import AUTO, CORNERS

_CORNER_OPACITY = 0.9
_MIN_WORSE_S = 1.5  # time for which another corner must be clearly better, s
_HEAD_COST = 10.0  # cost of a covered head; 1 is the cost of people who cover the whole inset


class Corner:
    """Chooser of the image corner in which the 3D inset is drawn, so that it covers little of the people."""

    def __init__(self, size: tuple[int, int], inset: tuple[int, int], below: int, position: str = AUTO) -> None:
        """Compute the possible places of the inset above a free strip; position is `auto` or one of `CORNERS`."""
        width, height = size
        margin = round(0.02 * height)
        right, low = width - inset[0] - margin, height - inset[1] - max(margin, below)
        self._positions = [(right, margin), (margin, margin), (right, low), (margin, low)]
        if position != AUTO:
            self._positions = [self._positions[CORNERS.index(position)]]
        self._inset = inset
        self._current = -1
        self._worse_since: float | None = None
        self._mask = _rounded_mask(inset, round(0.05 * inset[1]))

    def next_area(self, result: FrameResult, heads: F32) -> Area:
        """Return the area of the inset in a frame, away from heads (P, 4) xyxy px. Pass frames in order."""
        self._choose(result.people.boxes, heads, result.time)
        x, y = self._positions[self._current]
        return Area(x, y, x + self._inset[0], y + self._inset[1])

    def paste(self, image: U8, inset: U8, result: FrameResult, heads: F32) -> None:
        """Draw the inset on an image, in place, away from heads (P, 4) xyxy px. Pass frames in order."""
        patch = self.next_area(result, heads).of(image)
        blended = cv2.addWeighted(inset, _CORNER_OPACITY, patch, 1 - _CORNER_OPACITY, 0)
        cv2.copyTo(blended, self._mask, patch)

    def _choose(self, boxes: F32, heads: F32, time: float) -> None:
        """Choose the corner that covers people least; heads count more than bodies, and are uncovered at once."""
        covered = [self._covered_area(heads, position) > 0 for position in self._positions]
        costs = [self._covered_area(boxes, position) for position in self._positions]
        costs = [share + _HEAD_COST * head for share, head in zip(costs, covered, strict=True)]
        best = int(np.argmin(costs))
        if self._current < 0 or (covered[self._current] and not covered[best]):
            self._current = best
        if costs[best] >= costs[self._current] - 0.1:
            self._worse_since = None
        elif self._worse_since is None:
            self._worse_since = time
        elif time - self._worse_since > _MIN_WORSE_S:
            self._current, self._worse_since = best, None

    def _covered_area(self, boxes: F32, position: tuple[int, int]) -> float:
        """Return the area of people under the inset at this place, relative to the area of the inset."""
        if len(boxes) == 0:
            return 0.0
        low = np.maximum(boxes[:, :2], position)
        high = np.minimum(boxes[:, 2:], np.add(position, self._inset))
        overlap = np.maximum(high - low, 0).prod(axis=1).sum()
        return float(overlap) / (self._inset[0] * self._inset[1])


def _rounded_mask(size: tuple[int, int], radius: int) -> U8:
    width, height = size
    mask = np.zeros((height, width), np.uint8)
    cv2.rectangle(mask, (radius, 0), (width - 1 - radius, height - 1), 255, cv2.FILLED)
    cv2.rectangle(mask, (0, radius), (width - 1, height - 1 - radius), 255, cv2.FILLED)
    for x in (radius, width - 1 - radius):
        for y in (radius, height - 1 - radius):
            cv2.circle(mask, (x, y), radius, 255, cv2.FILLED)
    return mask
