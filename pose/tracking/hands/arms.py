"""Expected positions of hands from the arms of the body."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.networks.hands import shifted
from pose.structures.defaults import SEEN_SCORE
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, People, Regions

# Segment lengths in forearms. Source: Drillis and Contini 1966, in Winter, Biomechanics and Motor Control.
_UPPER_ARM, _SHOULDERS, _TRUNK = 0.186 / 0.146, 0.259 / 0.146, 0.288 / 0.146
# MediaPipe's crop of a hand from a body (`hand_recrop_by_roi`, 0.10.21), centred on the middle knuckle.
_SCALE, _SHIFT = 2.7, -0.1
_MIN_SIDE_FOREARMS, _MAX_SIDE_FOREARMS = 1.3, 2.2  # side of a crop, in forearms
# Distance from the wrist to the crop's centre without known points of the hand, in forearms.
_CENTER_DISTANCE_FOREARMS = 0.4


@dataclass(frozen=True, slots=True)
class Arms:
    """The arms of P people in the image."""

    # `regions` holds 2 P expected regions of the hands: left and right hand of person 0, then of person 1, and so on.

    wrists: F32  # (P, 2, 2) px; axis 1 is left, right, and axis 2 is x, y
    valid: NDArray[np.bool_]
    forearms: F32  # (P,) px, length of a forearm parallel to the image plane; 0 if it cannot be estimated
    regions: Regions  # 2 P expected regions of the hands: left and right hand of person 0, then of person 1, and so on

    @classmethod
    def of(cls, people: People, skeleton: Skeleton) -> "Arms":
        """Compute the arms of the people."""
        wrists, wrist_scores = _joints(people, skeleton, "wrist")
        elbows, elbow_scores = _joints(people, skeleton, "elbow")
        forearms = _forearms(people, skeleton)
        reached = np.asarray(forearms > 0)
        valid = np.asarray((wrist_scores >= SEEN_SCORE) & reached[:, None])
        along = wrists - elbows
        centers = wrists + _CENTER_DISTANCE_FOREARMS * forearms[:, None, None] * _unit(along)
        sides = np.repeat(_MAX_SIDE_FOREARMS / 1.25 * forearms[:, None], 2, axis=1)
        along[np.asarray(elbow_scores < SEEN_SCORE)] = (0, -1)
        if "left_index" in skeleton.names:
            index, index_scores = _joints(people, skeleton, "index")
            pinky, pinky_scores = _joints(people, skeleton, "pinky")
            has_fingers = np.minimum(index_scores, pinky_scores) >= SEEN_SCORE
            middle = (2 * index + pinky) / 3
            hand = middle - wrists
            hand_sides = _SCALE * 2 * np.linalg.norm(hand, axis=-1)
            centers, along = (
                np.where(has_fingers[..., None], middle, centers),
                np.where(has_fingers[..., None], hand, along),
            )
            sides = np.where(has_fingers, hand_sides, sides)
        sides = np.clip(sides, _MIN_SIDE_FOREARMS * forearms[:, None], _MAX_SIDE_FOREARMS * forearms[:, None])
        flat = (values.reshape(-1, 2).astype(np.float32) for values in (centers, along))
        centers, along = flat
        regions = shifted(centers, (sides / _SCALE).reshape(-1).astype(np.float32), along, _SCALE, _SHIFT)
        return cls(wrists, valid, forearms, regions)


def _joints(people: People, skeleton: Skeleton, joint: str) -> tuple[F32, F32]:
    """Return the left and right joint: positions (P, 2, 2) px and scores (P, 2), 0 where a coordinate is unknown."""
    at = [skeleton.index(f"{side}_{joint}") for side in ("left", "right")]
    points, scores = people.keypoints[:, at], people.scores[:, at]
    known = np.asarray(np.isfinite(points).all(axis=-1))
    return np.where(known[..., None], points, 0).astype(np.float32), np.where(known, scores, 0).astype(np.float32)


def _forearms(people: People, skeleton: Skeleton) -> F32:
    """Return forearm lengths (P,) px: the largest estimate, as foreshortening only shortens segments."""
    parts = {joint: _joints(people, skeleton, joint) for joint in ("shoulder", "elbow", "wrist", "hip")}

    def between(start: str, end: str, forearms: float) -> F32:
        (a, of_a), (b, of_b) = parts[start], parts[end]
        length = np.linalg.norm(a - b, axis=-1) / forearms
        result: F32 = np.where((of_a >= SEEN_SCORE) & (of_b >= SEEN_SCORE), length, 0).max(axis=1)
        return result

    shoulders, scores = parts["shoulder"]
    width = np.linalg.norm(shoulders[:, 0] - shoulders[:, 1], axis=-1) / _SHOULDERS
    width = np.where(scores.min(axis=1) >= SEEN_SCORE, width, 0)
    lengths = [
        between("elbow", "wrist", 1.0), between("shoulder", "elbow", _UPPER_ARM), between("shoulder", "hip", _TRUNK),
    ]  # fmt: skip
    result: F32 = np.max([*lengths, width], axis=0).astype(np.float32)
    return result


def _unit(vectors: F32) -> F32:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-6), np.float32)
