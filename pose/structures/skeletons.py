"""Joint sets with edges and flip pairs, and the conversion to Human3.6M-17.

A lifter works only with the definition of pelvis, spine, thorax, neck and head with which it was trained. This module
is therefore the only place with this definition, for training (on simulated detections of motion-capture bodies) and
for inference:

- pelvis: midpoint of the hips. thorax: midpoint of the shoulders. spine: midpoint of pelvis and thorax.
- neck / nose: the nose. head: midpoint of the ears.

These five are *observations*, derived from a detector's joints at points that differ slightly from the Human3.6M joints
(whose thorax is the base of the neck and whose head is the top of the head). `Skeleton.derived` is an input of the
lifter, whose output is Human3.6M-17 either way. An unknown joint has score 0.
"""

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

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


def wholebody_edges() -> tuple[Edge, ...]:
    """Return pairs of joint names: the edges of feet, hands and face to draw in addition to those of the body."""
    feet = (
        (f"{side}_ankle", f"{side}_{part}") for side in ("left", "right") for part in ("big_toe", "small_toe", "heel")
    )
    wrists = ((f"{side}_wrist", f"{side}_hand_root") for side in ("left", "right"))
    fingers = (edge for side in ("left", "right") for finger in _fingers(side) for edge in _line(finger))
    open_lines = (edge for line in (_JAW, *_BROWS, _NOSE, _NOSTRILS) for edge in _line(line))
    closed_lines = (edge for line in (*_EYES, _LIPS, _INNER_LIPS) for edge in _line(line, closed=True))
    return (*feet, *wrists, *fingers, *open_lines, *closed_lines)


H36M_NAMES = (
    "pelvis", "right_hip", "right_knee", "right_ankle", "left_hip", "left_knee", "left_ankle", "spine", "thorax",
    "neck", "head", "left_shoulder", "left_elbow", "left_wrist", "right_shoulder", "right_elbow", "right_wrist",
)  # fmt: skip
F32 = NDArray[np.float32]

# First, middle and last joint of each limb, by name; the columns of `Placed.inconsistent`.
LIMBS = {
    "left_leg": ("left_hip", "left_knee", "left_ankle"),
    "right_leg": ("right_hip", "right_knee", "right_ankle"),
    "left_arm": ("left_shoulder", "left_elbow", "left_wrist"),
    "right_arm": ("right_shoulder", "right_elbow", "right_wrist"),
}
COCO_NAMES = (
    "nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder", "left_elbow",
    "right_elbow", "left_wrist", "right_wrist", "left_hip", "right_hip", "left_knee", "right_knee", "left_ankle",
    "right_ankle",
)  # fmt: skip
HALPE_NAMES = (
    *COCO_NAMES, "head", "neck", "hip", "left_big_toe", "right_big_toe", "left_small_toe", "right_small_toe",
    "left_heel", "right_heel",
)  # fmt: skip
BLAZEPOSE_NAMES = (
    "nose", "left_eye_inner", "left_eye", "left_eye_outer", "right_eye_inner", "right_eye", "right_eye_outer",
    "left_ear", "right_ear", "mouth_left", "mouth_right", "left_shoulder", "right_shoulder", "left_elbow",
    "right_elbow", "left_wrist", "right_wrist", "left_pinky", "right_pinky", "left_index", "right_index", "left_thumb",
    "right_thumb", "left_hip", "right_hip", "left_knee", "right_knee", "left_ankle", "right_ankle", "left_heel",
    "right_heel", "left_foot_index", "right_foot_index",
)  # fmt: skip

_LIMBS = (
    ("left_shoulder", "left_elbow"), ("left_elbow", "left_wrist"), ("right_shoulder", "right_elbow"),
    ("right_elbow", "right_wrist"), ("left_hip", "left_knee"), ("left_knee", "left_ankle"), ("right_hip", "right_knee"),
    ("right_knee", "right_ankle"),
)  # fmt: skip
_TRUNK = (
    ("left_shoulder", "right_shoulder"), ("left_hip", "right_hip"), ("left_shoulder", "left_hip"),
    ("right_shoulder", "right_hip"),
)  # fmt: skip
_COCO_FACE = (
    ("nose", "left_eye"), ("nose", "right_eye"), ("left_eye", "left_ear"), ("right_eye", "right_ear"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A named joint set."""

    name: str  # name of the set
    names: tuple[str, ...]  # names of the joints
    edges: tuple[tuple[int, int], ...]  # (parent, child) index pairs to draw
    # Whether conversion to Human3.6M-17 must derive pelvis, spine, thorax, neck and head from other joints.
    derived: bool

    def __len__(self) -> int:
        return len(self.names)

    def index(self, joint: str) -> int:
        """Return the index of a joint; ValueError for an unknown name."""
        return self.names.index(joint)

    @property
    def flip_order(self) -> tuple[int, ...]:
        """Index of the mirrored joint for each joint, so that `x[..., flip_order, :]` swaps left and right."""
        return tuple(self.index(_mirror_name(name)) for name in self.names)

    def side(self, joint: int) -> str:
        """Return the side of a joint: 'left', 'right' or 'centre'."""
        parts = self.names[joint].split("_")
        return "left" if "left" in parts else "right" if "right" in parts else "centre"


def _mirror_name(name: str) -> str:
    swap = {"left": "right", "right": "left"}
    return "_".join(swap.get(part, part) for part in name.split("_"))


def _skeleton(name: str, names: tuple[str, ...], edges: tuple[tuple[str, str], ...], derived: bool = True) -> Skeleton:
    return Skeleton(name, names, tuple((names.index(a), names.index(b)) for a, b in edges), derived)


H36M17 = _skeleton(
    "h36m17",
    H36M_NAMES,
    (
        ("pelvis", "right_hip"), ("right_hip", "right_knee"), ("right_knee", "right_ankle"), ("pelvis", "left_hip"),
        ("left_hip", "left_knee"), ("left_knee", "left_ankle"), ("pelvis", "spine"), ("spine", "thorax"),
        ("thorax", "neck"), ("neck", "head"), ("thorax", "left_shoulder"), ("left_shoulder", "left_elbow"),
        ("left_elbow", "left_wrist"), ("thorax", "right_shoulder"), ("right_shoulder", "right_elbow"),
        ("right_elbow", "right_wrist"),
    ),
    derived=False,
)  # fmt: skip
COCO17 = _skeleton("coco17", COCO_NAMES, _LIMBS + _TRUNK + _COCO_FACE)
HALPE26 = _skeleton(
    "halpe26",
    HALPE_NAMES,
    (
        *_LIMBS, ("head", "neck"), ("neck", "hip"), ("neck", "left_shoulder"), ("neck", "right_shoulder"),
        ("hip", "left_hip"), ("hip", "right_hip"), ("left_ankle", "left_heel"), ("left_ankle", "left_big_toe"),
        ("left_ankle", "left_small_toe"), ("right_ankle", "right_heel"), ("right_ankle", "right_big_toe"),
        ("right_ankle", "right_small_toe"), *_COCO_FACE,
    ),
)  # fmt: skip
BLAZEPOSE33 = _skeleton(
    "blazepose33",
    BLAZEPOSE_NAMES,
    (
        *_LIMBS, *_TRUNK, ("nose", "left_eye"), ("nose", "right_eye"), ("left_eye", "left_ear"),
        ("right_eye", "right_ear"), ("mouth_left", "mouth_right"), ("left_wrist", "left_index"),
        ("left_wrist", "left_thumb"), ("left_wrist", "left_pinky"), ("right_wrist", "right_index"),
        ("right_wrist", "right_thumb"), ("right_wrist", "right_pinky"), ("left_ankle", "left_heel"),
        ("left_heel", "left_foot_index"), ("right_ankle", "right_heel"), ("right_heel", "right_foot_index"),
    ),
)  # fmt: skip

WHOLEBODY133 = _skeleton(
    "wholebody133",
    (*COCO_NAMES, *FEET, *FACE, *HANDS),
    (*_LIMBS, *_TRUNK, *_COCO_FACE, *wholebody_edges()),
)

SKELETONS = {skeleton.name: skeleton for skeleton in (H36M17, COCO17, HALPE26, BLAZEPOSE33, WHOLEBODY133)}


def get_skeleton(name: str) -> Skeleton:
    """Return the skeleton called `name`; ValueError with the known names if there is no such."""
    if name not in SKELETONS:
        raise ValueError(f"skeleton: unknown name {name!r}; known: {', '.join(SKELETONS)}")
    return SKELETONS[name]


# Human3.6M joint -> observed joints whose mean replaces it.
_DERIVED_FROM: dict[str, tuple[str, ...]] = {
    "pelvis": ("left_hip", "right_hip"),
    "spine": ("left_hip", "right_hip", "left_shoulder", "right_shoulder"),
    "thorax": ("left_shoulder", "right_shoulder"),
    "neck": ("nose",),
    "head": ("left_ear", "right_ear"),
}


@functools.cache
def _sources(skeleton: Skeleton) -> tuple[NDArray[np.int64], F32]:
    """Return indices (17, S) of the joints to average for each output joint, and weights (17, S, 1), 0 if unused."""
    rows = np.zeros((len(H36M_NAMES), max(map(len, _DERIVED_FROM.values()))), np.int64)
    weights = np.zeros((*rows.shape, 1), np.float32)
    for joint, name in enumerate(H36M_NAMES):
        sources = [skeleton.index(source) for source in _DERIVED_FROM.get(name, (name,))]
        rows[joint] = sources[0]
        rows[joint, : len(sources)] = sources
        weights[joint, : len(sources)] = 1 / len(sources)
    return rows, weights


def to_h36m17(keypoints: F32, scores: F32, skeleton: Skeleton) -> tuple[F32, F32]:
    """Convert keypoints (..., J, 2 or 3) and scores (..., J) of any skeleton to those of Human3.6M-17.

    A derived joint is the mean of its source joints. Its score is the minimum of their scores, so it counts as seen
    only if all source joints are seen. Units and frame are those of the input; another J is a ValueError.
    """
    if keypoints.shape[-2] != len(skeleton) or scores.shape[-1] != len(skeleton):
        raise ValueError(
            f"keypoints: {skeleton.name} has {len(skeleton)} joints, got {keypoints.shape[-2]} keypoints and "
            f"{scores.shape[-1]} scores"
        )
    if not skeleton.derived:
        return keypoints.astype(np.float32, copy=False), scores.astype(np.float32, copy=False)
    rows, weights = _sources(skeleton)
    xy = (keypoints[..., rows, :] * weights).sum(axis=-2)
    score = scores[..., rows].min(axis=-1)
    return xy.astype(np.float32, copy=False), score.astype(np.float32, copy=False)
