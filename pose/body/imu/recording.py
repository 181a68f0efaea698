"""Orientations of sensors on body segments over time."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from pose.errors import PoseError
from pose.structures.rotations import dot, same_sign, slerp, unit
from pose.structures.types import F64

# Segments that a sensor may be on, with the segment each is attached to.
SEGMENTS: dict[str, str | None] = {
    "pelvis": None,
    "trunk": "pelvis",
    "head": "trunk",
    **{f"{side}_thigh": "pelvis" for side in ("left", "right")},
    **{f"{side}_shank": f"{side}_thigh" for side in ("left", "right")},
    **{f"{side}_foot": f"{side}_shank" for side in ("left", "right")},
    **{f"{side}_upper_arm": "trunk" for side in ("left", "right")},
    **{f"{side}_forearm": f"{side}_upper_arm" for side in ("left", "right")},
    **{f"{side}_hand": f"{side}_forearm" for side in ("left", "right")},
}
MAX_SAMPLES = 10_000_000  # of one sensor; more than a day at 100 Hz
_MAX_RATE_HZ = 2000.0


@dataclass(frozen=True, slots=True)
class ImuSensor:
    """The orientation of one sensor in N samples."""

    segment: str  # a name in `SEGMENTS`
    name: str  # the sensor's name in the file
    times: F64  # (N,) s, strictly increasing
    # (N, 4) unit quaternions (w, x, y, z) that rotate vectors from the sensor's axes to the earth frame (z up)
    orientation: F64

    def at(self, times: F64) -> F64:
        """Return the orientation (T, 4) at `times` (T,) s within the recording, by spherical interpolation."""
        after = np.clip(np.searchsorted(self.times, times), 1, len(self.times) - 1)
        start, end = self.times[after - 1], self.times[after]
        fraction = np.clip((times - start) / (end - start), 0, 1)
        return slerp(self.orientation[after - 1], self.orientation[after], fraction)


@dataclass(frozen=True, slots=True)
class ImuRecording:
    """Sensors of one person, with one clock and one earth frame."""

    sensors: tuple[ImuSensor, ...]
    source: str  # name of the file, for messages

    @classmethod
    def of(cls, sensors: list[ImuSensor], source: str) -> Self:
        """Make a recording; PoseError if sensors share a segment, have no time in common, or there is none."""
        if not sensors:
            raise PoseError(
                f"{source}: contains no sensor with the name of a segment; the names are, for example, pelvis, "
                "left thigh, right lower leg, left foot, trunk, head, right forearm"
            )
        by_segment: dict[str, ImuSensor] = {}
        for sensor in sensors:
            if (other := by_segment.setdefault(sensor.segment, sensor)) is not sensor:
                raise PoseError(f"{source}: sensors {other.name!r} and {sensor.name!r} are both on {sensor.segment}")
        ordered = tuple(by_segment[segment] for segment in SEGMENTS if segment in by_segment)
        start = max(sensor.times[0] for sensor in ordered)
        end = min(sensor.times[-1] for sensor in ordered)
        if end <= start:
            raise PoseError(f"{source}: the sensors have no time in common; they need one clock")
        return cls(ordered, source)

    @property
    def rate(self) -> float:
        """Sampling rate in Hz, the median over the sensors."""
        return float(np.median([1 / np.median(np.diff(sensor.times)) for sensor in self.sensors]))

    def common_times(self, rate: float) -> F64:
        """Return times (T,) s at `rate` Hz during which all sensors recorded."""
        start = max(sensor.times[0] for sensor in self.sensors)
        end = min(sensor.times[-1] for sensor in self.sensors)
        count = int((end - start) * rate + 1e-6) + 1
        times: F64 = start + np.arange(count) / rate
        return times

    def stretched(self, rate: float, about: float) -> "ImuRecording":
        """Return the recording by a clock that runs faster by `rate` and agrees at the time `about` in s."""
        if rate == 0:
            return self
        return replace(
            self,
            sensors=tuple(replace(one, times=one.times + rate * (one.times - about)) for one in self.sensors),
        )

    def orientations(self, times: F64) -> dict[str, F64]:
        """Return the orientation (T, 4) of each sensor at `times` (T,) s, by segment."""
        return {sensor.segment: sensor.at(times) for sensor in self.sensors}


def sensor_of(segment: str, name: str, times: F64, orientation: F64, source: str) -> ImuSensor:
    """Make a sensor from the numbers of a file, and check them."""
    usable = np.isfinite(times) & np.isfinite(orientation).all(axis=1)
    times, orientation = times[usable], orientation[usable]
    if len(times) < 2:
        raise PoseError(f"{source}: sensor {name!r} has fewer than two samples with numbers")
    if len(times) > MAX_SAMPLES:
        raise PoseError(f"{source}: sensor {name!r} has {len(times)} samples; at most {MAX_SAMPLES} are read")
    if not (np.diff(times) > 0).all():
        raise PoseError(f"{source}: the time stamps of sensor {name!r} do not increase")
    if np.median(np.diff(times)) < 1 / _MAX_RATE_HZ:
        raise PoseError(f"{source}: sensor {name!r} has over {_MAX_RATE_HZ:g} samples/s; are its times in seconds?")
    norm = np.sqrt(dot(orientation, orientation))
    if (np.abs(norm - 1) > 0.05).any():
        raise PoseError(f"{source}: sensor {name!r} has quaternions that are not of length 1")
    return ImuSensor(segment, name, times, same_sign(unit(orientation)))
