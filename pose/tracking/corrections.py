"""Further 2D networks at a lower rate than that of the samples (`pose.tracking.sampling`).

The difference between two networks changes slowly, since errors of a network last for about a second. It is therefore
measured in some samples, and the keypoints of the frames between are corrected by the interpolated difference.
"""

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from pose.networks.estimators.ensemble import FurtherNetworks
from pose.structures.keypoint_sigma import with_distance
from pose.structures.types import F32, U8, People
from pose.tracking.sampling import TrackedFrame
from pose.utils.progress import StageTimes


@dataclass(frozen=True, slots=True)
class _Correction:
    """Difference between all networks and the first one, for one person in one frame."""

    time: float  # s
    shift: F32  # (J, 2) px
    factor: F32  # (J,) by which scores are multiplied
    distance: F32  # (J,) px, of the networks from each other

    def between(self, after: "_Correction", time: float) -> "_Correction":
        """Return the correction at `time`, interpolated linearly."""
        share = np.float32((time - self.time) / (after.time - self.time))
        names = ("shift", "factor", "distance")
        pairs = ((getattr(self, name), getattr(after, name)) for name in names)
        return _Correction(time, *(one + share * (other - one) for one, other in pairs))


class CorrectedFrames:
    """Correction frame by frame. A frame is returned when the next measurement after it is known."""

    def __init__(self, networks: FurtherNetworks, rate_hz: float, times: StageTimes) -> None:
        """Start without people; `rate_hz` is the number of measurements per second, 0 for every sample."""
        self._networks, self._times = networks, times
        self._interval = 1 / rate_hz if rate_hz else 0.0
        self._waiting: deque[TrackedFrame] = deque()
        self._measured_at = self._time = -np.inf  # s: last measurement, last sample
        self._corrections: dict[int, list[_Correction]] = {}  # at most the last two, by id

    def push(self, frame: TrackedFrame) -> list[TrackedFrame]:
        """Add the next frame; return the frames that are final now, oldest first."""
        people = frame.people
        self._waiting.append(frame)
        if not people.sampled:
            return []
        step, self._time = people.time - self._time, people.time
        new = any(person not in self._corrections for person in people.ids.tolist())
        if not (new or people.cut or people.time + step / 2 >= self._measured_at + self._interval):
            return []
        assert frame.image is not None
        self._measured_at = people.time
        self._measure(frame.image, people)
        done = [self._corrected(each) for each in self._waiting]
        self._waiting.clear()
        present = set(people.ids.tolist())
        self._corrections = {person: last for person, last in self._corrections.items() if person in present}
        return done

    def flush(self) -> list[TrackedFrame]:
        """Return the remaining frames after the end of the source."""
        done = [self._corrected(each) for each in self._waiting]
        self._waiting.clear()
        return done

    def _measure(self, image: U8, people: People) -> None:
        with self._times.measure("further keypoints"):
            found = self._networks.improved(image, people.keypoints, people.scores)
        factors = np.where(people.scores > 0, found.scores / np.where(people.scores > 0, people.scores, 1), 1)
        for row, person in enumerate(people.ids.tolist()):
            shift, factor = found.xy[row] - people.keypoints[row], factors[row].astype(np.float32)
            known = self._corrections.get(person, [])
            self._corrections[person] = [*known[-1:], _Correction(people.time, shift, factor, found.distance[row])]

    def _corrected(self, frame: TrackedFrame) -> TrackedFrame:
        people = frame.people
        keypoints, scores, distance = people.keypoints.copy(), people.scores.copy(), np.zeros_like(people.scores)
        for row, person in enumerate(people.ids.tolist()):
            known = self._corrections.get(person)
            if known is None:
                continue
            inside = len(known) == 2 and known[0].time < people.time < known[1].time
            nearest = min(known, key=lambda each: abs(each.time - people.time))
            correction = known[0].between(known[1], people.time) if inside else nearest
            keypoints[row] += correction.shift
            scores[row] = np.clip(scores[row] * correction.factor, 0, 1)
            distance[row] = correction.distance
        sigma = with_distance(people.keypoint_sigma, distance)
        return replace(frame, people=replace(people, keypoints=keypoints, scores=scores, keypoint_sigma=sigma))
