"""Conversion of joint positions to bone rotations, and forward kinematics.

The rest pose is a T-pose in metres: x to the person's left, y up, z forward. The arms are along the x axis. All
rotations are the identity in the rest pose. The rotation of a joint applies to the bones that start at it: the hip
rotates the thigh.

A direction determines two of a bone's three degrees of freedom. For pelvis and thorax the third comes from hips and
shoulders. For thigh and upper arm it comes from the plane of the bend, with knee and elbow as hinges. Below a bend of
15 degrees this plane is inaccurate, so its weight decreases to 0 for a straight limb. Other bones get the shortest
rotation, without twist. Recordings smooth the twist over time, which moves no joint.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pose.structures import rotations
from pose.structures.rotations import cross, dot, unit
from pose.structures.skeletons import H36M17
from pose.structures.types import F64

# Joints in an order in which parents precede their children. PARENTS has the index in NAMES of each joint's parent, -1
# for the root. ORDER has the index of each joint in H36M17.
NAMES = (
    "pelvis", "left_hip", "left_knee", "left_ankle", "right_hip", "right_knee", "right_ankle", "spine", "thorax",
    "neck", "head", "left_shoulder", "left_elbow", "left_wrist", "right_shoulder", "right_elbow", "right_wrist",
)  # fmt: skip
PARENTS = (-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 9, 8, 11, 12, 8, 14, 15)
ORDER = np.array([H36M17.index(name) for name in NAMES])
LEAVES = tuple(joint for joint in range(len(NAMES)) if joint not in PARENTS)
TWIST_SMOOTH_S = 0.15  # time constant over which the twist of a limb is smoothed
CLEAR_TWIST_WEIGHT = 0.5  # of a frame whose plane is clear
FULL_WEIGHT_BEND_RAD = np.radians(15)  # bend from which on its plane has full weight

_AT = {name: place for place, name in enumerate(NAMES)}
_PELVIS, _SPINE, _THORAX, _NECK, _HEAD = (_AT[name] for name in ("pelvis", "spine", "thorax", "neck", "head"))
_LEGS = [tuple(_AT[f"{side}_{joint}"] for joint in ("hip", "knee", "ankle")) for side in ("left", "right")]
_ARMS = [tuple(_AT[f"{side}_{joint}"] for joint in ("shoulder", "elbow", "wrist")) for side in ("left", "right")]
_X, _Y, _Z = np.eye(3)
_MIRROR = np.array([-1.0, 1, 1])


@dataclass(frozen=True, slots=True)
class Body:
    """The constant bone lengths of one person, as the vectors of a T-pose (x to the person's left, y up, z forward)."""

    offsets: F64  # (17, 3) m, vector from the parent to each joint, in the order of `NAMES`; 0 for the root
    # (17, 3) m, vector from each joint without children to the end of an assumed hand, foot or crown; 0 for other
    # joints.
    tips: F64


@dataclass(frozen=True, slots=True)
class SkeletonMotion:
    """The motion of a body in T frames."""

    root: F64  # (T, 3) m, position of the pelvis in file axes (y up)
    # (T, 17, 4) quaternions (w, x, y, z) of the joints relative to their parents, in the order of `NAMES`. For a
    # character, (T, B, 4) quaternions of its B bones.
    quaternions: F64


@dataclass(frozen=True, slots=True)
class FittedMotion:
    """The result of fitting bones to poses."""

    motion: SkeletonMotion  # the motion of the bones
    distance: F64  # (17,) m, distance of each Human3.6M-17 joint from the end of its bone, summed over the frames


def fit_body(chunks: Iterable[F64]) -> Body:
    """Compute the median bone lengths of a person, left and right pooled, from joints (T, 17, 3) m in file axes."""
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
    """Return the vectors of `Body.tips`, in proportion to the previous bone: foot forward, hand outward, head up."""
    tips = np.zeros_like(offsets)
    for leg, arm in zip(_LEGS, _ARMS, strict=True):
        shin = np.linalg.norm(offsets[leg[2]])
        tips[leg[2]] = 0, -0.1 * shin, 0.4 * shin
        tips[arm[2]] = 0.5 * offsets[arm[2]]
    tips[_HEAD] = 0.5 * offsets[_HEAD]
    return tips


def solve(points: F64, body: Body, times: F64 | None = None) -> SkeletonMotion:
    """Compute the bone rotations of `body` that fit joint positions; `times` (T,) s smooth the twist over time."""
    ordered = points[:, ORDER]
    global_quaternions = np.empty((*ordered.shape[:2], 4))  # rotations in file axes
    global_quaternions[:, _PELVIS] = pelvis = _quaternions(pelvis_frame(ordered))
    # The pelvis determines the position of the spine joint; the spine bone leads from there to the thorax.
    middle = ordered[:, _PELVIS] + rotations.rotate(pelvis, body.offsets[_SPINE])
    global_quaternions[:, _SPINE] = aimed(pelvis, _Y, unit(ordered[:, _THORAX] - middle))
    global_quaternions[:, _THORAX] = thorax = _quaternions(thorax_frame(ordered))
    global_quaternions[:, _NECK] = global_quaternions[:, _HEAD] = aimed(thorax, _Y, _direction(ordered, _NECK, _HEAD))
    for side, (leg, arm) in enumerate(zip(_LEGS, _ARMS, strict=True)):
        outward = _X if side == 0 else -_X
        for limb, parent, rest, hinge in ((leg, pelvis, -_Y, _X), (arm, thorax, outward, cross(outward, _Z))):
            upper, lower = _direction(ordered, limb[0], limb[1]), _direction(ordered, limb[1], limb[2])
            global_quaternions[:, limb[0]] = hinged(aimed(parent, rest, upper), upper, lower, hinge, times)
            global_quaternions[:, limb[1]] = global_quaternions[:, limb[2]] = aimed(
                global_quaternions[:, limb[0]], rest, lower
            )
    quaternions = global_quaternions.copy()
    quaternions[:, 1:] = rotations.multiply(
        rotations.inverse(global_quaternions[:, PARENTS[1:]]), global_quaternions[:, 1:]
    )
    return SkeletonMotion(ordered[:, _PELVIS].copy(), quaternions)


def joint_positions(body: Body, motion: SkeletonMotion) -> F64:
    """Compute joint positions (T, 17, 3) m in file axes (y up), in Human3.6M order, by forward kinematics."""
    points, _ = forward_kinematics(body, motion)
    placed = np.empty_like(points)
    placed[:, ORDER] = points
    return placed


def forward_kinematics(body: Body, motion: SkeletonMotion) -> tuple[F64, F64]:
    """Return joint positions (T, 17, 3) m and quaternions (T, 17, 4) in file axes (y up), in `NAMES` order."""
    points = np.empty((*motion.quaternions.shape[:2], 3))
    global_quaternions = np.empty_like(motion.quaternions)
    points[:, 0], global_quaternions[:, 0] = motion.root, motion.quaternions[:, 0]
    for joint, parent in enumerate(PARENTS[1:], start=1):
        points[:, joint] = points[:, parent] + rotations.rotate(global_quaternions[:, parent], body.offsets[joint])
        global_quaternions[:, joint] = rotations.multiply(global_quaternions[:, parent], motion.quaternions[:, joint])
    return points, global_quaternions


Axes = tuple[F64, F64, F64]


def pelvis_frame(ordered: F64) -> Axes:
    """Return the axes of the pelvis from hips and trunk."""
    return frame(ordered[:, _LEGS[0][0]] - ordered[:, _LEGS[1][0]], ordered[:, _THORAX] - ordered[:, _PELVIS])


def thorax_frame(ordered: F64) -> Axes:
    """Return the axes of the chest from shoulders and trunk."""
    return frame(ordered[:, _ARMS[0][0]] - ordered[:, _ARMS[1][0]], ordered[:, _THORAX] - ordered[:, _PELVIS])


def frame(across: F64, up: F64) -> Axes:
    """Compute orthonormal axes x (along `across`), y (towards `up`) and z, (T, 3) each."""
    x = unit(across)
    y = unit(up - dot(up, x)[..., None] * x)
    lost = dot(y, y) < 0.5  # `up` is parallel to `across`, or zero
    if lost.any():
        y[lost] = unit(cross(x[lost], np.eye(3)[np.abs(x[lost]).argmin(axis=-1)]))
    return x, y, cross(x, y)


def _quaternions(axes: Axes) -> F64:
    return rotations.from_axes(*axes)


def _within(axes: Axes, vector: F64) -> F64:
    """Return the coordinates (T, 3) of vectors (T, 3) along three axes."""
    return np.stack([dot(vector, axis) for axis in axes], axis=-1)


def _direction(ordered: F64, start: int, end: int) -> F64:
    return unit(ordered[:, end] - ordered[:, start])


def aimed(parent: F64, rest: F64, direction: F64) -> F64:
    """Return the rotation (T, 4) of a bone that points in `direction` (T, 3), without twist relative to its parent."""
    local = rotations.rotate(rotations.inverse(parent), direction)
    return rotations.multiply(parent, rotations.shortest_rotation(rest, local))


def hinged(quaternions: F64, upper: F64, lower: F64, hinge: F64, times: F64 | None = None) -> F64:
    """Twist an upper bone (T, 4) so that the hinge at its end can bend towards the lower bone."""
    # A limb that is straight for some frames has another plane after them. Without `times` the twist then jumps.
    # Frames count by their weight, so that the twist between two bends is interpolated along the shorter way.
    expected = rotations.rotate(quaternions, hinge)
    normal = cross(upper, lower)
    bend = np.arctan2(np.sqrt(dot(normal, normal)), dot(upper, lower))
    weight = np.clip(bend / FULL_WEIGHT_BEND_RAD, 0, 1)
    weight = weight * weight * (3 - 2 * weight)
    seen = unit(normal)
    if times is not None and len(times) > 1:
        twist = np.arctan2(dot(cross(expected, seen), upper), dot(expected, seen))
        return rotations.multiply(rotations.about(upper, _smooth_twist(twist, weight, times)), quaternions)
    axis = weight[:, None] * seen + (1 - weight[:, None]) * expected
    twist = np.arctan2(dot(cross(expected, axis), upper), dot(expected, axis))
    return rotations.multiply(rotations.about(upper, twist), quaternions)


def _smooth_twist(twist: F64, weight: F64, times: F64) -> F64:
    """Return continuous angles (T,) rad near `twist` where it has a `weight`, and with little change per second."""
    # Minimises sum w (a - twist)^2 + (constant / step)^2 (difference of a)^2, a tridiagonal system. Between frames with
    # a clear plane, that of the others is taken near the line from one to the next, so that noise winds nothing up.
    clear = np.flatnonzero(weight > CLEAR_TWIST_WEIGHT)
    aim = np.zeros_like(twist)
    if len(clear):
        aim = np.interp(np.arange(len(twist)), clear, np.unwrap(twist[clear]))
    aim += (twist - aim + np.pi) % (2 * np.pi) - np.pi
    w = weight + 1e-6
    step = np.maximum(np.diff(times), 1e-6)
    stiff = (TWIST_SMOOTH_S / step) ** 2
    diagonal, side = w.copy(), w * aim
    diagonal[:-1] += stiff
    diagonal[1:] += stiff
    for row in range(1, len(twist)):  # elimination, then substitution
        share = stiff[row - 1] / diagonal[row - 1]
        diagonal[row] -= share * stiff[row - 1]
        side[row] += share * side[row - 1]
    angles = side / diagonal
    for row in range(len(twist) - 2, -1, -1):
        angles[row] += stiff[row] * angles[row + 1] / diagonal[row]
    return np.asarray(angles)


def residual(points: F64, body: Body, motion: SkeletonMotion) -> F64:
    """Return the distances (T, 17) m of tracked joints from those of `motion`, in Human3.6M order."""
    result: F64 = np.linalg.norm(joint_positions(body, motion) - points, axis=-1)
    return result
