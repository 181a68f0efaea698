"""Names of the joints that COCO-WholeBody adds to COCO's 17: feet, face and hands, in the order of the data set.

Source: Jin et al., Whole-Body Human Pose Estimation in the Wild, 2020, arXiv:2007.11858. The data set only numbers its
68 face points. The names in this module contain side, part and number, and mirrored points have the same number. Left
and right are those of the person.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

Edge = tuple[str, str]


def _points(part: str, numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"{part}_{number}" for number in numbers)


FEET = (
    "left_big_toe", "left_small_toe", "left_heel", "right_big_toe", "right_small_toe", "right_heel",
)  # fmt: skip

_JAW = (*_points("right_jaw", range(1, 9)), "chin", *_points("left_jaw", range(8, 0, -1)))
_BROWS = (_points("right_brow", range(1, 6)), _points("left_brow", range(5, 0, -1)))
_NOSE = _points("nose_bridge", range(1, 5))
_NOSTRILS = ("right_nostril_1", "right_nostril_2", "nose_base", "left_nostril_2", "left_nostril_1")
_EYES = (_points("right_eye", range(1, 7)), _points("left_eye", (4, 3, 2, 1, 6, 5)))
_LIPS = (
    *_points("right_lip", (1, 2, 3)), "upper_lip", *_points("left_lip", (3, 2, 1, 4, 5)), "lower_lip",
    *_points("right_lip", (5, 4)),
)  # fmt: skip
_INNER_LIPS = (
    *_points("right_inner_lip", (1, 2)), "inner_upper_lip", *_points("left_inner_lip", (2, 1, 3)), "inner_lower_lip",
    "right_inner_lip_3",
)  # fmt: skip
FACE = (*_JAW, *_BROWS[0], *_BROWS[1], *_NOSE, *_NOSTRILS, *_EYES[0], *_EYES[1], *_LIPS, *_INNER_LIPS)

_FINGERS = ("thumb", "forefinger", "middle_finger", "ring_finger", "pinky_finger")


def _fingers(side: str) -> list[tuple[str, ...]]:
    """Return the joints of each finger, from the root of the hand to the tip."""
    return [(f"{side}_hand_root", *_points(f"{side}_{finger}", range(1, 5))) for finger in _FINGERS]


def _hand(side: str) -> tuple[str, ...]:
    return (f"{side}_hand_root", *(joint for finger in _fingers(side) for joint in finger[1:]))


HANDS = (*_hand("left"), *_hand("right"))


def _line(points: tuple[str, ...], *, closed: bool = False) -> Iterator[Edge]:
    yield from pairwise(points)
    if closed:
        yield points[-1], points[0]


def edges() -> tuple[Edge, ...]:
    """Return pairs of joint names: the edges of feet, hands and face to draw in addition to those of the body."""
    feet = (
        (f"{side}_ankle", f"{side}_{part}") for side in ("left", "right") for part in ("big_toe", "small_toe", "heel")
    )
    wrists = ((f"{side}_wrist", f"{side}_hand_root") for side in ("left", "right"))
    fingers = (edge for side in ("left", "right") for finger in _fingers(side) for edge in _line(finger))
    open_lines = (edge for line in (_JAW, *_BROWS, _NOSE, _NOSTRILS) for edge in _line(line))
    closed_lines = (edge for line in (*_EYES, _LIPS, _INNER_LIPS) for edge in _line(line, closed=True))
    return (*feet, *wrists, *fingers, *open_lines, *closed_lines)
