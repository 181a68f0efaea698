"""Conversion of joint positions to bone rotations, and forward kinematics.

The rest pose is a T-pose in file axes (x to the person's left, y up, z forward, metres): arms along the x axis, legs
down, trunk up, facing z. All rotations are the identity in the rest pose. The rotation of a joint applies to the bones
after it: the hip rotates the thigh.

A direction determines two of a bone's three degrees of freedom. For pelvis and thorax the third comes from hips and
shoulders. For thigh and upper arm it comes from the plane of the bend, with knee and elbow as hinges; within 15 degrees
of straight it is faded out, because the plane is noise there. Other bones get the shortest rotation, without twist.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.export import rotations
from pose.export.rotations import cross, dot, unit
from pose.skeletons import H36M17

F64 = NDArray[np.float64]

# Parents precede their children. Index into H36M17 of every joint, and of its parent (-1: the root).
NAMES = (
    "pelvis", "left_hip", "left_knee", "left_ankle", "right_hip", "right_knee", "right_ankle", "spine", "thorax",
    "neck", "head", "left_shoulder", "left_elbow", "left_wrist", "right_shoulder", "right_elbow", "right_wrist",
)  # fmt: skip
PARENTS = (-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 9, 8, 11, 12, 8, 14, 15)
ORDER = np.array([H36M17.index(name) for name in NAMES])
LEAVES = tuple(joint for joint in range(len(NAMES)) if joint not in PARENTS)
STRAIGHT = np.radians(15)  # minimum bend that determines a plane

_AT = {name: place for place, name in enumerate(NAMES)}
_PELVIS, _SPINE, _THORAX, _NECK, _HEAD = (_AT[name] for name in ("pelvis", "spine", "thorax", "neck", "head"))
_LEGS = [tuple(_AT[f"{side}_{joint}"] for joint in ("hip", "knee", "ankle")) for side in ("left", "right")]
_ARMS = [tuple(_AT[f"{side}_{joint}"] for joint in ("shoulder", "elbow", "wrist")) for side in ("left", "right")]
_X, _Y, _Z = np.eye(3)
_MIRROR = np.array([-1.0, 1, 1])


@dataclass(frozen=True, slots=True)
class Body:
    """The constant bone lengths of one person.

    Attributes:
        offsets: (17, 3) m, vector from the parent to each joint in the rest pose, in the order of `NAMES`; 0 for the
            root.
        tips: (17, 3) m, end of the bone of a leaf (an assumed hand, foot or crown, which no joint marks).
    """

    offsets: F64
    tips: F64


@dataclass(frozen=True, slots=True)
class SkeletonMotion:
    """The motion of a body in T frames.

    Attributes:
        root: (T, 3) m, position of the pelvis in file axes.
        turns: (T, 17, 4), rotation of each joint in its parent's frame.
    """

    root: F64
    turns: F64


@dataclass(frozen=True, slots=True)
class Solved:
    """The result of fitting bones to poses.

    Attributes:
        motion: The motion of the bones.
        distance: (17,) m, distance of each Human3.6M-17 joint from its bone, summed over the frames.
    """

    motion: SkeletonMotion
    distance: F64


def fit_body(chunks: Iterable[F64]) -> Body:
    """Compute the median bones from points (T, 17, 3) m in file axes, Human3.6M order; left and right are pooled."""
    sides, middle, shoulders, necks = [], [], [], []
    for points in chunks:
        ordered = points[:, ORDER]
        lengths = np.linalg.norm(ordered - ordered[:, np.maximum(PARENTS, 0)], axis=-1)
        sides.append(np.stack([lengths[:, [*_LEGS[side], *_ARMS[side]]] for side in range(2)]))
        middle.append(lengths[:, [_SPINE, _THORAX, _HEAD]])
        frame = thorax_frame(ordered)
        shoulders += [
            _within(frame, ordered[:, arm[0]] - ordered[:, _THORAX]) * mirror
            for arm, mirror in zip(_ARMS, (np.ones(3), _MIRROR), strict=True)
        ]
        necks.append(_within(frame, ordered[:, _NECK] - ordered[:, _THORAX]))
    hip, knee, ankle, _, elbow, wrist = np.median(np.concatenate(sides, axis=1), axis=(0, 1))
    spine, thorax, head = np.median(np.concatenate(middle), axis=0)
    shoulder = np.median(np.concatenate(shoulders), axis=0)
    offsets = np.zeros((len(NAMES), 3))
    offsets[[_SPINE, _THORAX, _HEAD], 1] = spine, thorax, head
    offsets[_NECK] = np.median(np.concatenate(necks), axis=0) * (0, 1, 1)
    for leg, arm, mirror in zip(_LEGS, _ARMS, (np.ones(3), _MIRROR), strict=True):
        offsets[list(leg)] = np.array([(hip, 0, 0), (0, -knee, 0), (0, -ankle, 0)]) * mirror
        offsets[list(arm)] = np.array([shoulder, (elbow, 0, 0), (wrist, 0, 0)]) * mirror
    return Body(offsets, _tips(offsets))


def _tips(offsets: F64) -> F64:
    """Return leaf bones in proportion to the previous bone: foot forward, hand outward, crown upward."""
    tips = np.zeros_like(offsets)
    for leg, arm in zip(_LEGS, _ARMS, strict=True):
        shin = np.linalg.norm(offsets[leg[2]])
        tips[leg[2]] = 0, -0.1 * shin, 0.4 * shin
        tips[arm[2]] = 0.5 * offsets[arm[2]]
    tips[_HEAD] = 0.5 * offsets[_HEAD]
    return tips


def solve(points: F64, body: Body) -> SkeletonMotion:
    """Compute the bone rotations of `body` from points (T, 17, 3) m in file axes, in Human3.6M order.

    Only the directions of the bones count, not their lengths: a wrong scale in a frame does not change the pose. File
    axes: x to the person's left, y up, z forward. The rest pose is a T-pose.
    """
    ordered = points[:, ORDER]
    whole = np.empty((*ordered.shape[:2], 4))  # rotations in the file's frame
    whole[:, _PELVIS] = pelvis = _turn(pelvis_frame(ordered))
    # The pelvis determines the middle of the trunk; the spine leads from there to the thorax.
    middle = ordered[:, _PELVIS] + rotations.rotate(pelvis, body.offsets[_SPINE])
    whole[:, _SPINE] = aimed(pelvis, _Y, unit(ordered[:, _THORAX] - middle))
    whole[:, _THORAX] = thorax = _turn(thorax_frame(ordered))
    whole[:, _NECK] = whole[:, _HEAD] = aimed(thorax, _Y, _direction(ordered, _NECK, _HEAD))
    for side, (leg, arm) in enumerate(zip(_LEGS, _ARMS, strict=True)):
        outward = _X if side == 0 else -_X
        for limb, parent, rest, hinge in ((leg, pelvis, -_Y, _X), (arm, thorax, outward, cross(outward, _Z))):
            upper, lower = _direction(ordered, limb[0], limb[1]), _direction(ordered, limb[1], limb[2])
            whole[:, limb[0]] = hinged(aimed(parent, rest, upper), upper, lower, hinge)
            whole[:, limb[1]] = whole[:, limb[2]] = aimed(whole[:, limb[0]], rest, lower)
    turns = whole.copy()
    turns[:, 1:] = rotations.multiply(rotations.inverse(whole[:, PARENTS[1:]]), whole[:, 1:])
    return SkeletonMotion(ordered[:, _PELVIS].copy(), turns)


def place(body: Body, motion: SkeletonMotion) -> F64:
    """Compute joints (T, 17, 3) m in file axes, in Human3.6M order, by forward kinematics."""
    points, _ = whole_turns(body, motion)
    placed = np.empty_like(points)
    placed[:, ORDER] = points
    return placed


def whole_turns(body: Body, motion: SkeletonMotion) -> tuple[F64, F64]:
    """Return joint positions (T, 17, 3) m and rotations (T, 17, 4) in the file's frame, in the order of `NAMES`."""
    points = np.empty((*motion.turns.shape[:2], 3))
    whole = np.empty_like(motion.turns)
    points[:, 0], whole[:, 0] = motion.root, motion.turns[:, 0]
    for joint, parent in enumerate(PARENTS[1:], start=1):
        points[:, joint] = points[:, parent] + rotations.rotate(whole[:, parent], body.offsets[joint])
        whole[:, joint] = rotations.multiply(whole[:, parent], motion.turns[:, joint])
    return points, whole


Axes = tuple[F64, F64, F64]


def pelvis_frame(ordered: F64) -> Axes:
    """Return left, up and forward (T, 3) of the pelvis from hips and trunk; points are in the order of `NAMES`."""
    return frame(ordered[:, _LEGS[0][0]] - ordered[:, _LEGS[1][0]], ordered[:, _THORAX] - ordered[:, _PELVIS])


def thorax_frame(ordered: F64) -> Axes:
    """Return left, up and forward (T, 3) of the chest from shoulders and trunk; points are in the order of `NAMES`."""
    return frame(ordered[:, _ARMS[0][0]] - ordered[:, _ARMS[1][0]], ordered[:, _THORAX] - ordered[:, _PELVIS])


def frame(across: F64, up: F64) -> Axes:
    """Compute orthonormal axes x, y, z, (T, 3) each, from two vectors.

    Args:
        across: (T, 3) direction of x.
        up: (T, 3) vectors whose normalised component perpendicular to x is y.
    """
    x = unit(across)
    y = unit(up - dot(up, x)[..., None] * x)
    lost = dot(y, y) < 0.5  # `up` is parallel to `across`, or zero
    if lost.any():
        y[lost] = unit(cross(x[lost], np.eye(3)[np.abs(x[lost]).argmin(axis=-1)]))
    return x, y, cross(x, y)


def _turn(axes: Axes) -> F64:
    return rotations.of_axes(*axes)


def _within(axes: Axes, vector: F64) -> F64:
    """Return the coordinates (T, 3) of vectors in a frame."""
    return np.stack([dot(vector, axis) for axis in axes], axis=-1)


def _direction(ordered: F64, start: int, end: int) -> F64:
    return unit(ordered[:, end] - ordered[:, start])


def aimed(parent: F64, rest: F64, direction: F64) -> F64:
    """Return the parent's rotation (T, 4), followed by the shortest one from `rest` (3,) to `direction` (T, 3)."""
    local = rotations.rotate(rotations.inverse(parent), direction)
    return rotations.multiply(parent, rotations.between(rest, local))


def hinged(turn: F64, upper: F64, lower: F64, hinge: F64) -> F64:
    """Twist the rotation `turn` (T, 4) of an upper bone so that the hinge at its end bends towards `lower`."""
    expected = rotations.rotate(turn, hinge)
    seen = cross(upper, lower)
    bend = np.arctan2(np.sqrt(dot(seen, seen)), dot(upper, lower))
    share = np.clip(bend / STRAIGHT, 0, 1)[:, None]
    share = share * share * (3 - 2 * share)
    axis = share * unit(seen) + (1 - share) * expected
    twist = np.arctan2(dot(cross(expected, axis), upper), dot(expected, axis))
    return rotations.multiply(rotations.about(upper, twist), turn)


def residual(points: F64, body: Body, motion: SkeletonMotion) -> F64:
    """Return the distances (T, 17) m between points in file axes and the bones of `motion`, both in Human3.6M order."""
    result: F64 = np.linalg.norm(place(body, motion) - points, axis=-1)
    return result
