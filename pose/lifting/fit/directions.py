"""Directions of bones that sensors on the body measure: residuals of the fit beside the 2D keypoints.

The residual of a bone is (its unit vector - the measured direction) / sigma, with a Cauchy loss, because a magnetic
disturbance turns a sensor for seconds. Axes: K frames, B bones of `H36M17.edges`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from pose.errors import UsageError
from pose.lifting.fit.bones import Bones
from pose.structures.skeletons import H36M17
from pose.structures.stages import LifterStage
from pose.structures.types import F64, I64, Flags

_CAUCHY_SCALE = 3.0  # scale of the Cauchy loss in standard deviations
_HINGE_SIGMA = np.radians(5.0)  # of a bone across the axis of the joint at its end
_HIDDEN_SPREAD = 8.0  # factor on the corrections' standard deviations where the person is not detected
_RADIUS_68 = 1.14  # variance of an axis of two, times this and two: square of the radius with 68 %


def nearest(known: F64, times: F64, reach: float) -> tuple[I64, Flags]:
    """Return the index of the nearest known time for each of some times, and whether it is nearer than `reach` s."""
    after = np.minimum(np.searchsorted(known, times), len(known) - 1)
    before = np.maximum(after - 1, 0)
    rows = np.where(np.abs(times - known[before]) < np.abs(times - known[after]), before, after)
    return rows, np.asarray(np.abs(known[rows] - times) < reach)


@dataclass(frozen=True, slots=True)
class BoneDirections:
    """Directions of the bones of one person."""

    times: F64  # (T,) s, increasing
    directions: F64  # (T, B, 3) unit vectors from the first to the second joint of each bone, in camera axes
    sigma: F64  # (T, B) rad, standard deviation about each axis across the bone; inf where nothing was measured
    sensors: Flags  # (B,) whether a sensor is on the bone; directions of others follow from these
    # (T, B, 3) axes of the joint at the end of a bone, across which the bone lies, in camera axes; 0 where unknown.
    # None without.
    hinges: F64 | None = None

    def joints_at(self, times: F64) -> Flags:
        """Return the joints (K, 17) at the end of a bone that a sensor measures at times (K,) s."""
        target = self.at(times, np.zeros(len(times), bool))
        result = np.zeros((len(times), len(H36M17)), bool)
        result[:, [end for _, end in H36M17.edges]] = target.precision > 0
        return result

    def at(self, times: F64, hidden: Flags) -> "BoneTarget":
        """Return the measurements nearest to times (K,) s; directions without a sensor count in hidden frames only."""
        rows, near = nearest(self.times, times, 0.1)
        known = near[:, None] & (self.sensors | hidden[:, None])
        precision = np.where(known & np.isfinite(self.sigma[rows]), self.sigma[rows], np.inf) ** -2.0
        hinges = np.zeros((len(times), *self.directions.shape[1:])) if self.hinges is None else self.hinges[rows]
        spread = np.where(hidden, _HIDDEN_SPREAD, 1.0)
        return BoneTarget(self.directions[rows], precision, spread, hinges * near[:, None, None])


@dataclass(frozen=True, slots=True)
class WornSensors:
    """Sensors of one person of a video."""

    people: tuple[int, ...]  # track ids of the person, the first for all
    offset: float  # time in s to add to the sensors' times; with a drift, at the middle of the video
    correlation: float  # correlation of the angular speeds at this offset
    segments: tuple[str, ...]  # names of the segments with a sensor that moves a bone
    directions: BoneDirections  # measured directions of bones
    drift: float = 0.0  # rate by which the sensors' clock must run faster to agree; 0 if the video does not show one

    @property
    def line(self) -> str:
        """A line for the summary of the run."""
        return (
            f"inertial sensors: {len(self.segments)} on person {self.people[0]}, "
            f"offset {self.offset:+.3f} s (correlation {self.correlation:.2f})"
            + (f", clock {1e6 * self.drift:+.0f} ppm" if self.drift else "")
        )


@runtime_checkable
class TakesDirections(Protocol):
    """Additional method of a `LifterStage` that can fit measured directions."""

    def take_directions(self, directions: Mapping[int, BoneDirections]) -> None:
        """Set the directions that sensors measure, by track id, before the first frame."""
        ...


def give_directions(stage: LifterStage, directions: Mapping[int, BoneDirections]) -> None:
    """Make a stage fit measured directions; UsageError if the stage cannot, because it streams."""
    if not isinstance(stage, TakesDirections):
        raise UsageError("imu: needs an offline lifter; leave out --lifter and --lookahead")
    stage.take_directions(directions)


@dataclass(frozen=True, slots=True)
class BoneTarget:
    """Measured directions at K frames."""

    directions: F64  # (K, B, 3)
    precision: F64  # (K, B) 1/rad^2; 0 where nothing was measured
    spread: F64  # (K,) factors on the standard deviations of the corrections
    hinges: F64  # (K, B, 3) axes of hinges; 0 where unknown

    def cost(self, bones: Bones, points: F64) -> float:
        """Return half the sum of the squared residuals at points (K, N, 3) m, with a Cauchy loss."""
        off = bones.measure(points)[1] - self.directions
        scale = _CAUCHY_SCALE**2
        lean = (bones.measure(points)[1] * self.hinges).sum(axis=-1) / _HINGE_SIGMA
        squares = (off * off).sum(axis=-1) * self.precision, lean**2
        return float(sum(0.5 * scale * np.log1p(square / scale).sum() for square in squares))

    def add(self, bones: Bones, frames: F64, right: F64, points: F64) -> None:
        """Add the residuals to the points' normal equations (K, N, 3, N, 3) and (K, N, 3), in place."""
        length, along = bones.measure(points)
        off = along - self.directions
        weight = self.precision / (1 + (off * off).sum(axis=-1) * self.precision / _CAUCHY_SCALE**2)
        slope = (np.eye(3) - along[..., :, None] * along[..., None, :]) / np.maximum(length, 1e-2)[..., None, None]
        blocks = weight[..., None, None] * (slope @ slope)
        pull = weight[..., None] * (slope @ off[..., None])[..., 0]
        lean = (along * self.hinges).sum(axis=-1)
        weight = _HINGE_SIGMA**-2 / (1 + (lean / _HINGE_SIGMA) ** 2 / _CAUCHY_SCALE**2)
        across = (slope @ self.hinges[..., None])[..., 0]
        blocks += weight[..., None, None] * across[..., :, None] * across[..., None, :]
        bones.add_blocks(frames, right, blocks, pull + (weight * lean)[..., None] * across)

    def followed(self, bones: Bones, points: F64) -> F64:
        """Return points (K, N, 3) m whose measured bones have the measured directions, and unchanged lengths."""
        length, along = bones.measure(points)
        along = np.where(self.precision[..., None] > 0, self.directions, along) * length[..., None]
        result = points.copy()
        for bone, (a, b) in enumerate(zip(bones.starts, bones.ends, strict=True)):
            result[:, b] = result[:, a] + along[:, bone]
        return result

    def joint_sigma(self, bones: Bones, lengths: F64, sigma: F64) -> F64:
        """Return sigma (K, N) mm of joints, reduced to what the measured directions of their chains leave of it."""
        own = np.where(self.precision > 0, 2 * _RADIUS_68 * (1000 * lengths) ** 2 / np.maximum(self.precision, 1e-9), 0)
        result = sigma.astype(np.float64)
        for bone, (a, b) in enumerate(zip(bones.starts, bones.ends, strict=True)):
            chained = np.sqrt(result[:, a] ** 2 * (a > 0) + own[:, bone])
            result[:, b] = np.where(self.precision[:, bone] > 0, np.minimum(result[:, b], chained), result[:, b])
        return result
