"""What a run saw, drawn on its pictures: 2D skeletons coloured by side, ids, and the 3D inset.

On landscape pictures the inset lies in the corner that hides least, and moves only when people stay under it; beside
portrait and square ones, where any corner hides somebody, it gets a panel of its own.
"""

import cv2
import numpy as np

from pose.skeletons import Skeleton
from pose.types import F32, U8, FrameResult, People
from pose.view import draw
from pose.view.colours import INK, PAPER, SIDE_COLOURS, mix, person_colour
from pose.view.inset import Inset

_HIDDEN_BELOW = 0.12  # scores under this are not drawn,
_FULL_FROM = 0.65  # from this on drawn opaque, between the two fading
_LANDSCAPE = 1.2  # width / height from which on the inset lies in a corner
_CORNER_SHARE = 0.4  # of the picture's height
_CORNER_OPACITY = 0.85
_MOVE_SECONDS = 1.5  # how long another corner must be clearly better
_FACE = ("nose", "eye", "ear", "mouth")
_HAND = ("pinky", "index", "thumb")


class Overlay:
    """Draws results on the pictures of one video, in order.

    output_size: (width, height) px of what `draw` returns; wider than the video where the inset has its own panel.
    """

    def __init__(self, size: tuple[int, int], skeleton: Skeleton, inset: bool = True) -> None:
        """size: (width, height) px of the video. skeleton: of the 2D keypoints."""
        self._size = size
        self._skeleton = skeleton
        self._sides = [skeleton.side(joint) for joint in range(len(skeleton))]
        self._fine = [_is_fine(name) for name in skeleton.names]
        width, height = size
        self._beside = width < _LANDSCAPE * height
        self._inset: Inset | None = None
        self._corner: _Corner | None = None
        self.output_size = size
        if inset and self._beside:
            panel = min(height, max(width, round(0.75 * height)))
            self._inset = Inset((panel, height))
            self.output_size = width + panel, height
        elif inset:
            side = round(_CORNER_SHARE * height)
            self._inset = Inset((round(1.1 * side), side))
            self._corner = _Corner(size, self._inset.size)

    def draw(self, image: U8, result: FrameResult) -> U8:
        """The picture with everything drawn on it, a new (H, W, 3) uint8 RGB of `output_size`.

        image: (H, W, 3) uint8 RGB, the frame that `result` is about.
        """
        width, height = self._size
        if image.shape != (height, width, 3):
            raise ValueError(f"image: expected shape {(height, width, 3)}, got {image.shape}")
        canvas = np.empty((height, self.output_size[0], 3), np.uint8)
        canvas[:, :width] = image
        picture = canvas[:, :width]
        self._draw_people(picture, result.people)
        if self._inset is not None:
            inset = self._inset.render(result)
            if self._corner is None:
                canvas[:, width:] = inset
            else:
                self._corner.paste(picture, inset, result)
        return canvas

    def _draw_people(self, image: U8, people: People) -> None:
        rows = np.argsort(people.boxes[:, 3], kind="stable").tolist()  # who stands lower is nearer: drawn last
        for row in rows:
            self._draw_skeleton(image, people.boxes[row], people.keypoints[row], people.scores[row])
        unit = _unit(self._size)
        for row in rows:
            x1, y1, x2, _ = people.boxes[row].tolist()
            person = int(people.ids[row])
            draw.label(image, str(person), ((x1 + x2) / 2, y1 - 2 * unit), 9 * unit, person_colour(person))

    def _draw_skeleton(self, image: U8, box: F32, keypoints: F32, scores: F32) -> None:
        opacity = np.clip((scores - _HIDDEN_BELOW) / (_FULL_FROM - _HIDDEN_BELOW), 0, 1)
        opacity = np.where(np.isfinite(keypoints).all(axis=1), opacity, 0).tolist()
        points = [(float(x), float(y)) for x, y in keypoints]
        unit = _unit(self._size)
        width = max(1.2, min(3.6 * unit, 0.016 * float(box[3] - box[1])))
        rim = max(1.0, 0.3 * width)
        limbs = []
        for a, b in self._skeleton.edges:
            seen = min(opacity[a], opacity[b])
            if seen > 0:
                fine = self._fine[a] and self._fine[b]
                limbs.append((points[a], points[b], self._colour(a, b), width * (0.55 if fine else 1), seen))
        for start, end, _, thick, seen in limbs:
            draw.stroke(image, start, end, INK, thick + 2 * rim, 0.75 * seen)
        for start, end, colour, thick, seen in limbs:
            draw.stroke(image, start, end, colour, thick, seen)
        for joint, seen in enumerate(opacity):
            if seen > 0:
                colour = SIDE_COLOURS[self._sides[joint]]
                radius = width * (0.6 if self._fine[joint] else 1.0)
                draw.disc(image, points[joint], radius + 0.6 * rim, INK, seen)
                draw.disc(image, points[joint], radius, mix(colour, PAPER, 0.35), seen)

    def _colour(self, a: int, b: int) -> tuple[int, int, int]:
        sides = {self._sides[a], self._sides[b]} - {"centre"}
        return SIDE_COLOURS[sides.pop() if len(sides) == 1 else "centre"]


def _is_fine(name: str) -> bool:
    """Whether a joint lies in the face or the hand, where joints are close together."""
    return any(part in _FACE or part in _HAND for part in name.split("_")) and "foot" not in name


def _unit(size: tuple[int, int]) -> float:
    """1 for a 1280 x 720 picture; what a stroke or letter is scaled with."""
    return max(0.45, (size[0] * size[1]) ** 0.5 / 960)


class _Corner:
    """Where on a landscape picture the inset lies."""

    def __init__(self, size: tuple[int, int], inset: tuple[int, int]) -> None:
        width, height = size
        margin = round(0.02 * height)
        right, low = width - inset[0] - margin, height - inset[1] - margin
        self._places = [(right, margin), (margin, margin), (right, low), (margin, low)]
        self._inset = inset
        self._current = -1
        self._worse_since: float | None = None
        self._mask = _rounded_mask(inset, round(0.05 * inset[1]))

    def paste(self, image: U8, inset: U8, result: FrameResult) -> None:
        self._choose(result.people.boxes, result.time)
        x, y = self._places[self._current]
        patch = image[y : y + self._inset[1], x : x + self._inset[0]]
        blended = cv2.addWeighted(inset, _CORNER_OPACITY, patch, 1 - _CORNER_OPACITY, 0)
        cv2.copyTo(blended, self._mask, patch)

    def _choose(self, boxes: F32, time: float) -> None:
        hidden = [self._hidden(boxes, place) for place in self._places]
        best = int(np.argmin(hidden))
        if self._current < 0:
            self._current = best
        if hidden[best] >= hidden[self._current] - 0.1:
            self._worse_since = None
        elif self._worse_since is None:
            self._worse_since = time
        elif time - self._worse_since > _MOVE_SECONDS:
            self._current, self._worse_since = best, None

    def _hidden(self, boxes: F32, place: tuple[int, int]) -> float:
        """How much of the inset's area there would cover people."""
        if len(boxes) == 0:
            return 0.0
        low = np.maximum(boxes[:, :2], place)
        high = np.minimum(boxes[:, 2:], np.add(place, self._inset))
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
