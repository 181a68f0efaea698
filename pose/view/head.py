"""Position of a person's head in the image, and visibility of the face."""

import numpy as np

from pose.structures.defaults import DRAWN_SCORE
from pose.structures.skeletons import FACE, Skeleton
from pose.structures.types import F32, F64

HEAD_RADIUS = 0.095  # m, of drawn people

_HEAD_PARTS = ("nose", "eye", "ear", "mouth", "head")
_FACE_PARTS = ("nose", "eye", "mouth")  # joints on the front of the head
_MIN_EAR_SWAP = 0.3  # neck lengths; with ears swapped by more, the head is seen from behind
_HIDDEN_FACE_OPACITY = 0.2  # relative opacity of face joints seen from behind
_TO_CROWN = 0.75  # neck lengths from the centre of the head joints to the top
_DEFAULT_NECK = 0.13  # assumed neck length in box heights, if the shoulders are not visible


class HeadLocator:
    """Estimator of the head's position in the image, from the 2D keypoints of one skeleton."""

    def __init__(self, skeleton: Skeleton) -> None:
        names = skeleton.names
        self.face = np.array(
            [name in FACE or any(part in _FACE_PARTS for part in name.split("_")) for name in names], np.bool_
        )
        self._joints = [i for i, name in enumerate(names) if any(part in _HEAD_PARTS for part in name.split("_"))]
        self._ears = _pair(names, "ear")
        self._shoulders = _pair(names, "shoulder")

    def crown(self, keypoints: F32, scores: F32, box: F32) -> tuple[F64, F64]:
        """Return the top of the head (2,) px, else of the box, and the unit direction (2,) from the neck through it."""
        seen = [joint for joint in self._joints if scores[joint] > DRAWN_SCORE]
        upwards = np.array([0.0, -1.0])
        assumed_length = _DEFAULT_NECK * float(box[3] - box[1])
        if not seen:
            return np.array([(box[0] + box[2]) / 2, box[1]], np.float64), upwards
        head = keypoints[seen].mean(axis=0).astype(np.float64)
        if not self._known(self._shoulders, scores):
            return head + _TO_CROWN * assumed_length * upwards, upwards
        neck = head - keypoints[self._shoulders].mean(axis=0)
        length = float(np.hypot(*neck))
        if (
            length < 0.3 * assumed_length
        ):  # the head is bent towards the camera, so the direction of the neck is undefined
            return head + _TO_CROWN * assumed_length * upwards, upwards
        return head + _TO_CROWN * neck, neck / length

    def area(self, keypoints: F32, scores: F32, box: F32) -> F64 | None:
        """Return a box (4,) xyxy px around the head's joints, with the distance to its top as margin, or None."""
        seen = [joint for joint in self._joints if scores[joint] > DRAWN_SCORE]
        if not seen:
            return None
        joints = keypoints[seen].astype(np.float64)
        crown, _ = self.crown(keypoints, scores, box)
        margin = float(np.hypot(*(crown - joints.mean(axis=0))))
        return np.concatenate([joints.min(axis=0) - margin, joints.max(axis=0) + margin])

    def opacity(self, keypoints: F32, scores: F32) -> float:
        """Return the opacity with which to draw the face: 1 if visible, down to 0.2 if seen from behind."""
        # From behind, the left ear of an upright person is to the left of the right ear in the image.
        if not self._known(self._ears, scores) or not self._known(self._shoulders, scores):
            return 1.0
        left, right = keypoints[self._ears].astype(np.float64)
        neck = (left + right) / 2 - keypoints[self._shoulders].mean(axis=0)
        square = float(neck @ neck)
        if square == 0:
            return 1.0
        across = left - right
        swapped = float(across[0] * neck[1] - across[1] * neck[0]) / square
        return float(np.clip(1 - swapped / _MIN_EAR_SWAP, _HIDDEN_FACE_OPACITY, 1))

    @staticmethod
    def _known(pair: list[int], scores: F32) -> bool:
        return bool(pair) and min(scores[joint] for joint in pair) > DRAWN_SCORE


def _pair(names: tuple[str, ...], joint: str) -> list[int]:
    """Return the indices of the left and right joint; an empty list if the skeleton lacks them."""
    pair = [f"left_{joint}", f"right_{joint}"]
    return [names.index(name) for name in pair] if set(pair) <= set(names) else []
