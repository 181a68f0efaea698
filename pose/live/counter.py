"""Live count of repetitions of movements such as squats, for messages and the web page."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pose.analysis.repetitions import MIN_NAMED, UNNAMED, find_repetitions, movement_name
from pose.body.segments import Motion
from pose.structures.types import F64, FrameResult

POSES_PER_S = 10.0  # stored poses per second
WINDOW_S = 45.0  # duration of the analysed poses
ANALYSIS_INTERVAL_S = 1.0  # interval of the analysis
MAX_PAUSE_S = 20.0  # time without a repetition after which the count restarts
OVERLAP_SHARE = 0.25  # maximum overlap with the last counted repetition, as a fraction of the duration
MAX_PEOPLE = 3  # counted at a time, those with the lowest ids


@dataclass(frozen=True, slots=True)
class Count:
    """The repetitions of one movement by one person."""

    movement: str
    count: int  # number of complete repetitions


@dataclass(slots=True)
class _Person:
    poses: deque[tuple[float, F64, F64]] = field(default_factory=deque)
    counted: Count | None = None
    ends: deque[float] = field(default_factory=deque)  # ends of the counted repetitions in the window, s
    analysed_at: float = -np.inf  # time of the last analysis, s

    @property
    def last_end(self) -> float:
        """End of the last counted repetition in s, -inf if there is none in the window."""
        return self.ends[-1] if self.ends else -np.inf


class RepetitionCounter:
    """Counter of the complete repetitions of each person of a stream."""

    # One repetition alone is not recognised: the first is counted together with the second.

    def __init__(self) -> None:
        self._people: dict[int, _Person] = {}

    def add(self, result: FrameResult) -> Mapping[int, Count]:
        """Process the next frame, and return the counts by track id, of at most three people in it."""
        if result.poses is None:
            return {}
        ids = result.people.ids.tolist()
        self._people = {person: kept for person, kept in self._people.items() if self._is_current(kept, result.time)}
        for row, person in enumerate(ids):
            if person in sorted(ids)[:MAX_PEOPLE]:
                self._add_pose(self._people.setdefault(person, _Person()), result, row)
        return {person: kept.counted for person in ids if (kept := self._people.get(person)) and kept.counted}

    def _is_current(self, person: _Person, time: float) -> bool:
        return bool(person.poses) and 0 <= time - person.poses[-1][0] < MAX_PAUSE_S

    def _add_pose(self, person: _Person, result: FrameResult, row: int) -> None:
        joints = (result.poses.joints[row] + result.poses.root[row]) * np.array([1.0, -1.0, -1.0])
        due = not person.poses or result.time - person.poses[-1][0] >= 0.999 / POSES_PER_S
        if not due or not np.isfinite(joints).all():
            return
        person.poses.append((result.time, joints.astype(np.float64), result.poses.sigma[row].astype(np.float64)))
        if result.time - person.poses[0][0] > WINDOW_S:
            self._shorten(person, result.time - WINDOW_S)
        if result.time - person.analysed_at >= ANALYSIS_INTERVAL_S and len(person.poses) > 2 * POSES_PER_S:
            person.analysed_at = result.time
            self._count(person, result.time)

    def _shorten(self, person: _Person, begin: float) -> None:
        # The window starts at the end of a repetition: one that started at the lowest position of a squat would take
        # this position for rest.
        while person.ends and person.ends[0] < begin:
            person.ends.popleft()
        begin = person.ends[0] if person.ends else begin
        while person.poses[0][0] < begin:
            person.poses.popleft()

    def _count(self, person: _Person, now: float) -> None:
        times, joints, sigma = (np.array(column) for column in zip(*person.poses, strict=True))
        repetitions = find_repetitions(Motion(times, joints, sigma))
        new = [
            repetition
            for repetition in repetitions.items
            if repetition.complete
            and repetition.start > person.last_end - OVERLAP_SHARE * (repetition.end - repetition.start)
        ]
        if new:
            before = 0 if person.counted is None else person.counted.count
            name = movement_name(repetitions.courses) if len(repetitions.courses) >= MIN_NAMED else UNNAMED
            person.counted = Count(name, before + len(new))
            person.ends.extend(repetition.end for repetition in new)
        elif now - person.last_end > MAX_PAUSE_S:
            person.counted = None
