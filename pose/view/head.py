"""Where a person's head is in the picture, and whether it looks away."""

import numpy as np
from numpy.typing import NDArray

from pose.skeletons import Skeleton
from pose.types import F32
from pose.wholebody import FACE

F64 = NDArray[np.float64]

_HEAD = ("nose", "eye", "ear", "mouth", "head")
_LOOKING = ("nose", "eye", "mouth")  # what is seen of a head from its front only
_SEEN_FROM = 0.12  # scores under this say nothing
_AWAY = 0.3  # ears, in neck lengths, exchanged by this much: the head shows its back
_BACK_OF_HEAD = 0.2  # the share of their opacity that joints of the face keep then
_TO_CROWN = 0.75  # neck lengths from the middle of the head's joints to its top
_USUAL_NECK = 0.13  # of the box's height, where the shoulders are not seen


class Head:
    """Reads the head off the keypoints of one skeleton."""

    def __init__(self, skeleton: Skeleton) -> None:
        names = skeleton.names
        self.face = np.array(
            [name in FACE or any(part in _LOOKING for part in name.split("_")) for name in names], np.bool_
        )
        self._joints = [i for i, name in enumerate(names) if any(part in _HEAD for part in name.split("_"))]
        self._ears = _pair(names, "ear")
        self._shoulders = _pair(names, "shoulder")

    def crown(self, keypoints: F32, scores: F32, box: F32) -> tuple[F64, F64]:
        """The top of the head (2,) px, and the direction (2,), of length 1, that goes on from the neck through it.

        keypoints: (J, 2) px. scores: (J,), 0 where a keypoint is not known. box: (4,) px, whose upper edge is
        taken where no joint of the head is seen.
        """
        seen = [joint for joint in self._joints if scores[joint] > _SEEN_FROM]
        upwards = np.array([0.0, -1.0])
        usual = _USUAL_NECK * float(box[3] - box[1])
        if not seen:
            return np.array([(box[0] + box[2]) / 2, box[1]], np.float64), upwards
        head = keypoints[seen].mean(axis=0).astype(np.float64)
        if not self._known(self._shoulders, scores):
            return head + _TO_CROWN * usual * upwards, upwards
        neck = head - keypoints[self._shoulders].mean(axis=0)
        length = float(np.hypot(*neck))
        if length < 0.3 * usual:  # bent towards the camera: the neck has no direction
            return head + _TO_CROWN * usual * upwards, upwards
        return head + _TO_CROWN * neck, neck / length

    def opacity(self, keypoints: F32, scores: F32) -> float:
        """How opaque the face is drawn: 1 while it can be seen, less as the head turns its back on the camera.

        The ears say it: seen from behind, the left one is on the left of the neck's line.
        """
        if not self._known(self._ears, scores) or not self._known(self._shoulders, scores):
            return 1.0
        left, right = keypoints[self._ears].astype(np.float64)
        neck = (left + right) / 2 - keypoints[self._shoulders].mean(axis=0)
        square = float(neck @ neck)
        if square == 0:
            return 1.0
        across = left - right
        exchanged = float(across[0] * neck[1] - across[1] * neck[0]) / square
        return float(np.clip(1 - exchanged / _AWAY, _BACK_OF_HEAD, 1))

    @staticmethod
    def _known(pair: list[int], scores: F32) -> bool:
        return bool(pair) and min(scores[joint] for joint in pair) > _SEEN_FROM


def _pair(names: tuple[str, ...], joint: str) -> list[int]:
    """The left one and the right one; empty in a skeleton without them."""
    pair = [f"left_{joint}", f"right_{joint}"]
    return [names.index(name) for name in pair] if set(pair) <= set(names) else []
