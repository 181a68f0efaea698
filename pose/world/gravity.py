"""Estimation of the vertical from people in front of a static camera.

Two observations are combined. First, the centre of mass of a standing body is above the middle of its feet. This is
inaccurate along the viewing direction, where the lifter errs, and because people lean. Second, feet at different
positions on one floor define a plane. Its accuracy depends on the spread of the feet; for a person on one spot, the
spread is due to depth errors only. The weights are uncertainties that were measured on people with known gravity. They
also give the uncertainty of the result.

The lines from feet to head of people at different positions meet in the vertical vanishing point. Giving these lines
more weight than the lifter's depth was not more accurate (see docs/studies/world.md).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pose.structures.skeletons import H36M17
from pose.structures.types import F64
from pose.world.frame import BODIES, FEET, GIVEN, LEVEL_UP, UNKNOWN, World, rotation_of
from pose.world.rules import GRAVITY

ANKLES = [H36M17.index("left_ankle"), H36M17.index("right_ankle")]
_HIPS = [H36M17.index("left_hip"), H36M17.index("right_hip")]
_PELVIS, _THORAX = H36M17.index("pelvis"), H36M17.index("thorax")

# Fractions of the body's mass at the joints: each segment's mass (D. A. Winter, Biomechanics and Motor Control of
# Human Movement, table 4.1) is split between its ends so that its centre is kept. Limbs are per side.
_LIMB_MASSES = {"shoulder": 0.0158, "elbow": 0.0192, "wrist": 0.0150, "hip": 0.0567, "knee": 0.0673, "ankle": 0.0370}
_TRUNK_MASSES = {"pelvis": 0.2485, "thorax": 0.2485, "neck": 0.0405, "head": 0.0405}
_MASSES = np.array(
    [_TRUNK_MASSES.get(name, _LIMB_MASSES.get(name.partition("_")[2], 0.0)) for name in H36M17.names], np.float64
)

_ITERATIONS = 3
_MIN_FEET = 10  # minimum standing feet


class AnyBodyMotion(Protocol):
    """Motion of one person in T frames, with the methods that `find_gravity` needs."""

    @property
    def times(self) -> F64:
        """Times (T,) of the frames, s."""
        ...

    def directions(self, feet_ahead: float) -> tuple[F64, F64]:
        """Return the directions (T, 3) of the body and heights (T,) m of the centre of mass as `body_directions`."""
        ...

    def ankles(self) -> F64:
        """Return the positions (T, 2, 3) m of the left and right ankle, camera axes."""
        ...


@dataclass(frozen=True, slots=True)
class BodyMotion:
    """One person's motion in memory."""

    joints: F64  # (T, 17, 3) m relative to the pelvis, camera axes
    root: F64  # (T, 3) m, position of the pelvis, camera axes
    times: F64

    def directions(self, feet_ahead: float) -> tuple[F64, F64]:
        """Return the result of `body_directions` for the joints."""
        return body_directions(self.joints, feet_ahead)

    def ankles(self) -> F64:
        """Return the positions (T, 2, 3) m of the left and right ankle, camera axes."""
        ankles: F64 = self.joints[:, ANKLES] + self.root[:, None]
        return ankles


def given_gravity(up: F64) -> World:
    """Return the world for a vertical (3,) of any length in camera axes, without a floor."""
    return World(rotation_of(up), 0.0, GIVEN, 0.0, floor_known=False)


def find_gravity(people: Iterable[AnyBodyMotion]) -> World:
    """Estimate the common vertical of people, without a floor; `found_by` is 'unknown' if it is not reliable."""
    total, seconds, feet = np.zeros(3), 0.0, []
    for person in people:
        direction, lasts = body_direction_sum(person)
        total, seconds = total + direction, seconds + lasts
        feet.append(_standing_feet(person))
    if seconds == 0:
        return _unknown()
    up = _unit(total)
    tangent = np.linalg.svd(up[None])[2][1:].T  # (3, 2): the two directions of errors
    prior_information = np.eye(2) / (GRAVITY.body_sigma_rad**2 + GRAVITY.posture_sigma_rad**2 / max(seconds, 1e-3))
    information = prior_information
    body, found = up, up
    for iteration in range(_ITERATIONS):
        plane = sum((_plane_information(points, found, iteration) for points in feet), np.zeros((3, 3)))
        information = prior_information + tangent.T @ plane @ tangent
        found = _unit(body - tangent @ np.linalg.solve(information, tangent.T @ plane @ body))
    left = np.linalg.inv(information)
    sigma = float(np.degrees(np.sqrt(np.trace(left) / 2)))
    if sigma > GRAVITY.max_sigma_degrees:
        return _unknown()
    by_feet = float(np.trace(left)) < 0.5 * float(np.trace(np.linalg.inv(prior_information)))
    return World(rotation_of(found), 0.0, FEET if by_feet else BODIES, sigma, floor_known=False)


def body_up(people: Iterable[AnyBodyMotion]) -> F64:
    """Return the direction (3,) opposite to gravity from upright bodies alone; a level camera's without any."""
    total = sum((body_direction_sum(person)[0] for person in people), np.zeros(3))
    return _unit(total) if total.any() else LEVEL_UP


def body_directions(joints: NDArray[np.floating], feet_ahead: float = GRAVITY.feet_ahead_share) -> tuple[F64, F64]:
    """Compute the direction from the feet to the centre of mass in T frames."""
    joints = np.asarray(joints, np.float64)
    axis = _MASSES @ joints - joints[:, ANKLES].mean(axis=1)
    height = np.linalg.norm(axis, axis=1)
    left = _unit(joints[:, _HIPS[0]] - joints[:, _HIPS[1]])
    ahead = _unit(np.cross(left, _unit(joints[:, _THORAX] - joints[:, _PELVIS])))
    return _unit(_unit(axis) - feet_ahead * ahead), height


def body_direction_sum(person: AnyBodyMotion) -> tuple[F64, float]:
    """Return the sum of a person's body directions while standing (3,), weighted by duration, and the duration in s."""
    if len(person.times) < 2:
        return np.zeros(3), 0.0
    axes, heights = person.directions(GRAVITY.feet_ahead_share)
    upright = axes @ LEVEL_UP > np.cos(np.radians(GRAVITY.max_tilt_degrees))
    if not upright.any():
        return np.zeros(3), 0.0
    is_standing = upright & (heights > GRAVITY.min_upright_share * np.percentile(heights[upright], 95))
    step = float(np.median(np.diff(person.times)))
    return step * axes[is_standing].sum(axis=0), step * int(is_standing.sum())


def _standing_feet(person: AnyBodyMotion) -> tuple[F64, float]:
    """Return the positions (N, 3) m of slow ankles, and how many of them count as one independent observation."""
    if len(person.times) < 3:
        return np.zeros((0, 3)), 1.0
    ankles = person.ankles()
    speed = np.linalg.norm(np.gradient(ankles, person.times, axis=0), axis=-1)
    return ankles[speed < GRAVITY.max_standing_speed_mps], max(
        1.0, GRAVITY.correlation_s / float(np.median(np.diff(person.times)))
    )


def _plane_information(feet: tuple[F64, float], up: F64, iteration: int) -> F64:
    """Return the information matrix M (3, 3) of the floor plane from one person's feet."""
    # For a plane with normal u, u^T M u is the misfit in squared standard deviations. Each person has its own parallel
    # plane, because a size error moves the person along the line of sight. Along the floor, only the spread beyond
    # depth errors (`GRAVITY.foot_spread_m`) counts. In iteration 0, more feet count as standing on the floor.
    points, correlated = feet
    if len(points) < _MIN_FEET:
        return np.zeros((3, 3))
    height = points @ up
    low = float(np.percentile(height, 10))
    on = (
        np.abs(height - low) < GRAVITY.max_plane_distance_m
        if iteration
        else height < low + 3 * GRAVITY.max_plane_distance_m
    )
    if not on.any():  # the percentile is interpolated, so no foot may be near it
        return np.zeros((3, 3))
    spread = points[on] - points[on].mean(axis=0)
    square = spread.T @ spread / max(len(spread), 1)
    flat = np.eye(3) - np.outer(up, up)
    variances, axes = np.linalg.eigh(flat @ square @ flat)
    kept = np.sqrt(np.maximum(variances - GRAVITY.foot_spread_m**2, 0) / np.maximum(variances, 1e-12))
    true = axes @ (kept[:, None] * axes.T) + np.outer(up, up)
    return np.asarray(len(spread) * true @ square @ true / (GRAVITY.foot_height_sigma_m**2 * correlated))


def _unknown() -> World:
    return World(rotation_of(LEVEL_UP), 0.0, UNKNOWN, float("nan"), floor_known=False)


def _unit(vectors: F64) -> F64:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9))
