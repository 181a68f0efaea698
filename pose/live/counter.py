"""Live count of repetitions of movements such as squats, for messages and the web page."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pose.analysis.motion import Motion
from pose.analysis.movement_names import movement_name
from pose.analysis.repetitions import find_repetitions
from pose.types import F64, FrameResult

RATE = 10.0  # stored poses per second
KEPT_S = 45.0
EVERY_S = 1.0  # interval of the analysis
FORGET_S = 20.0  # time without a repetition after which the count restarts
MOST_PEOPLE = 3  # maximum number of people counted at a time, those with the lowest ids


@dataclass(frozen=True, slots=True)
class Count:
    """The repetitions of one movement.

    Attributes:
        movement: Name of the movement.
        count: Complete repetitions.
    """

    movement: str
    count: int


@dataclass(slots=True)
class _Person:
    poses: deque[tuple[float, F64, F64]] = field(default_factory=deque)
    counted: Count | None = None
    last: float = -np.inf  # time of the last counted repetition, s
    asked: float = -np.inf


class RepetitionCounter:
    """Counter of the repetitions of each person of a stream.

    A repetition is counted when it is complete. One repetition alone is not recognised: the first is counted together
    with the second.
    """

    def __init__(self) -> None:
        self._people: dict[int, _Person] = {}

    def add(self, result: FrameResult) -> Mapping[int, Count]:
        """Process the next frame, and return the counts by person id.

        The result contains people of this frame who repeat a movement. At most three people are counted at a time.
        """
        if result.poses is None:
            return {}
        ids = result.people.ids.tolist()
        self._people = {person: kept for person, kept in self._people.items() if self._recent(kept, result.time)}
        for row, person in enumerate(ids):
            if person in sorted(ids)[:MOST_PEOPLE]:
                self._take(self._people.setdefault(person, _Person()), result, row)
        return {person: kept.counted for person in ids if (kept := self._people.get(person)) and kept.counted}

    def _recent(self, person: _Person, time: float) -> bool:
        return bool(person.poses) and 0 <= time - person.poses[-1][0] < FORGET_S

    def _take(self, person: _Person, result: FrameResult, row: int) -> None:
        joints = (result.poses.joints[row] + result.poses.root[row]) * np.array([1.0, -1.0, -1.0])
        due = not person.poses or result.time - person.poses[-1][0] >= 0.999 / RATE
        if not due or not np.isfinite(joints).all():
            return
        person.poses.append((result.time, joints.astype(np.float64), result.poses.sigma[row].astype(np.float64)))
        while result.time - person.poses[0][0] > KEPT_S:
            person.poses.popleft()
        if result.time - person.asked >= EVERY_S and len(person.poses) > 2 * RATE:
            person.asked = result.time
            self._count(person, result.time)

    def _count(self, person: _Person, now: float) -> None:
        times, joints, sigma = (np.array(column) for column in zip(*person.poses, strict=True))
        found = find_repetitions(Motion(times, joints, sigma))
        new = [one for one in found.items if one.complete and one.peak > person.last + 0.25]
        if new:
            before = 0 if person.counted is None else person.counted.count
            person.counted = Count(movement_name(found.courses), before + len(new))
            person.last = max(one.peak for one in new)
        elif now - person.last > FORGET_S:
            person.counted = None
