"""Which way is up, from people before a fixed camera.

Bodies that stand tell it: their centre of mass is above the middle of their feet. That is weak in the direction of the
view, where the lifter errs, and people lean. Feet that stand on one floor at different places tell it by the plane
through them, as far as they have gone; who stays on one spot spreads their feet by the errors of their depth alone, and
that says nothing. Both are put together, each with the uncertainty that it had on people of known gravity; what is left
says how far the answer can be trusted.

The lines from feet to head of people at different places meet in the vanishing point of the vertical. Weighing the
bodies' directions so that these lines count more than the lifter's depth did not measure better (see
docs/studies/world.md).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.skeletons import H36M17
from pose.world.frame import BODIES, FEET, GIVEN, LEVEL_UP, UNKNOWN, World, rotation_of
from pose.world.rules import RULES, GravityRules

F64 = NDArray[np.float64]

ANKLES = [H36M17.index("left_ankle"), H36M17.index("right_ankle")]
_HIPS = [H36M17.index("left_hip"), H36M17.index("right_hip")]
_PELVIS, _THORAX = H36M17.index("pelvis"), H36M17.index("thorax")

# Shares of the body's mass at its joints: each segment's (D. A. Winter, Biomechanics and Motor Control of Human
# Movement, table 4.1) at its two ends so that its own centre is where it is. Limbs are counted for each side.
_LIMB_MASSES = {"shoulder": 0.0158, "elbow": 0.0192, "wrist": 0.0150, "hip": 0.0567, "knee": 0.0673, "ankle": 0.0370}
_TRUNK_MASSES = {"pelvis": 0.2485, "thorax": 0.2485, "neck": 0.0405, "head": 0.0405}
_MASSES = np.array(
    [_TRUNK_MASSES.get(name, _LIMB_MASSES.get(name.partition("_")[2], 0.0)) for name in H36M17.names], np.float64
)

_ROUNDS = 3
_FEW = 10  # feet that stand


@dataclass(frozen=True, slots=True)
class Standing:
    """What one person says. joints: (T, 17, 3) m relative to the pelvis, root: (T, 3) m, camera axes. times: (T,) s."""

    joints: F64
    root: F64
    times: F64


def given_gravity(up: F64) -> World:
    """The world of a known vertical; its floor is not known yet."""
    return World(rotation_of(up), 0.0, GIVEN, 0.0, floor_known=False)


def find_gravity(people: Iterable[Standing], rules: GravityRules = RULES.gravity) -> World:
    """The vertical that people show together; its floor is not known yet. Unknown where it cannot be trusted.

    people: looked at once, one after another; only the places of standing feet are kept.
    """
    total, seconds, feet = np.zeros(3), 0.0, []
    for person in people:
        direction, lasts = _body(person, rules)
        total, seconds = total + direction, seconds + lasts
        feet.append(_standing_feet(person, rules))
    if seconds == 0:
        return _unknown()
    up = _unit(total)
    tangent = np.linalg.svd(up[None])[2][1:].T  # (3, 2): the two directions in which it may err
    believed = np.eye(2) / (rules.body_sigma_rad**2 + rules.posture_sigma_rad**2 / max(seconds, 1e-3))
    information = believed
    body, found = up, up
    for turn in range(_ROUNDS):
        plane = sum((_plane_information(points, found, rules, turn) for points in feet), np.zeros((3, 3)))
        information = believed + tangent.T @ plane @ tangent
        found = _unit(body - tangent @ np.linalg.solve(information, tangent.T @ plane @ body))
    left = np.linalg.inv(information)
    sigma = float(np.degrees(np.sqrt(np.trace(left) / 2)))
    if sigma > rules.trusted_degrees:
        return _unknown()
    by_feet = float(np.trace(left)) < 0.5 * float(np.trace(np.linalg.inv(believed)))
    return World(rotation_of(found), 0.0, FEET if by_feet else BODIES, sigma, floor_known=False)


def body_directions(
    joints: NDArray[np.floating], feet_ahead: float = RULES.gravity.feet_ahead_share
) -> tuple[F64, F64]:
    """(T, 3) unit vectors from the middle of the feet to the centre of mass of bodies (T, 17, 3), and its height (T,) m
    above them.
    """
    joints = np.asarray(joints, np.float64)
    axis = _MASSES @ joints - joints[:, ANKLES].mean(axis=1)
    height = np.linalg.norm(axis, axis=1)
    left = _unit(joints[:, _HIPS[0]] - joints[:, _HIPS[1]])
    ahead = _unit(np.cross(left, _unit(joints[:, _THORAX] - joints[:, _PELVIS])))
    return _unit(_unit(axis) - feet_ahead * ahead), height


def _body(person: Standing, rules: GravityRules) -> tuple[F64, float]:
    """The sum (3,) of the directions of one person's body where it stands, each times the seconds that it stands for,
    and the seconds of all.
    """
    if len(person.times) < 2:
        return np.zeros(3), 0.0
    axes, heights = body_directions(person.joints, rules.feet_ahead_share)
    upright = axes @ LEVEL_UP > np.cos(np.radians(rules.max_tilt_degrees))
    if not upright.any():
        return np.zeros(3), 0.0
    stands = upright & (heights > rules.upright_share * np.percentile(heights[upright], 95))
    step = float(np.median(np.diff(person.times)))
    return step * axes[stands].sum(axis=0), step * int(stands.sum())


def _standing_feet(person: Standing, rules: GravityRules) -> tuple[F64, float]:
    """Places (N, 3) m of ankles that hardly move, and how many of them are one observation."""
    if len(person.times) < 3:
        return np.zeros((0, 3)), 1.0
    ankles = (person.joints + person.root[:, None])[:, ANKLES]
    speed = np.linalg.norm(np.gradient(ankles, person.times, axis=0), axis=-1)
    return ankles[speed < rules.standing_speed_mps], max(
        1.0, rules.correlation_s / float(np.median(np.diff(person.times)))
    )


def _plane_information(feet: tuple[F64, float], up: F64, rules: GravityRules, turn: int) -> F64:
    """(3, 3) M such that u M u is how badly a plane of normal u fits one person's feet, in standard deviations squared.

    Every person has a plane of its own, all parallel: who is taken for too large is also put too far away and too low.
    Along the floor the spread counts that is more than errors make, `rules.foot_spread_m` in each direction.
    """
    points, together = feet
    if len(points) < _FEW:
        return np.zeros((3, 3))
    height = points @ up
    low = float(np.percentile(height, 10))
    on = np.abs(height - low) < rules.plane_distance_m if turn else height < low + 3 * rules.plane_distance_m
    if not on.any():  # it may lie between them
        return np.zeros((3, 3))
    spread = points[on] - points[on].mean(axis=0)
    square = spread.T @ spread / max(len(spread), 1)
    flat = np.eye(3) - np.outer(up, up)
    variances, axes = np.linalg.eigh(flat @ square @ flat)
    kept = np.sqrt(np.maximum(variances - rules.foot_spread_m**2, 0) / np.maximum(variances, 1e-12))
    true = axes @ (kept[:, None] * axes.T) + np.outer(up, up)
    return np.asarray(len(spread) * true @ square @ true / (rules.foot_height_sigma_m**2 * together))


def _unknown() -> World:
    return World(rotation_of(LEVEL_UP), 0.0, UNKNOWN, float("nan"), floor_known=False)


def _unit(vectors: F64) -> F64:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9))
