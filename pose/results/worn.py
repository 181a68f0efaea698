"""Run of a video with inertial sensors on a person: lifted twice, the second time with the directions of bones.

The first lifting shows who wears the sensors, when, and how they are mounted.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from pose.errors import PoseError
from pose.lifting.fit.directions import WornSensors
from pose.results.recorded import RecordedRun
from pose.structures.types import F32, F64, FrameResult, People

MAX_HIDDEN_S = 5.0  # longest time without any keypoint in which the sensors alone continue a person


@dataclass(frozen=True, slots=True)
class FirstRun:
    """A run without the sensors.

    Attributes:
        results: Results of all frames in camera coordinates.
        turns: (F, 3, 3) rotations from the camera axes of each frame to those of the first.
        up: (3,) direction against gravity in the camera axes of the first frame; None if unknown.
    """

    results: Iterable[FrameResult]
    turns: F64
    up: F64 | None

    @classmethod
    def of(cls, recorded: RecordedRun, up: F64 | None) -> Self:
        """Return what the sensors need of a run; `up` is given by the user.

        Raises:
            PoseError: If the camera's motion is unknown, or the video has cuts.
        """
        world = recorded.info.world
        if world is None or any(result.people.cut for result in recorded.lifted):
            raise PoseError("--imu: needs a video without cuts, from a camera whose motion is known")
        turns = [np.eye(3) if result.view is None else result.view.rotation for result in recorded.results]
        known = None if world.world.found_by == "unknown" else world.world.up
        return cls(recorded.lifted, np.array(turns), known if up is None else up)


FindWorn = Callable[[FirstRun], WornSensors]  # finds what the sensors measure


def with_hidden(people: Callable[[], Iterator[People]], worn: WornSensors) -> Iterator[People]:
    """Yield the sampled people of all frames; the wearer of the sensors has one id, and a row where it is hidden.

    Args:
        people: Function that returns an iterator over all frames.
        worn: The sensors.
    """
    wearer, seen = worn.people[0], list[tuple[float, F32]]()
    for frame in people():
        rows = np.flatnonzero(np.isin(frame.ids, worn.people) & ~frame.interpolated)
        if len(rows):
            seen.append((frame.time, frame.boxes[rows[0]]))
    times = np.array([time for time, _ in seen])
    for frame in people():
        frame = frame[~frame.interpolated] if frame.interpolated.any() else frame
        named = np.isin(frame.ids, worn.people)
        if named.any():
            ids = np.where(named, wearer, frame.ids)
            yield replace(frame, ids=ids)
            continue
        after = int(np.searchsorted(times, frame.time))
        if frame.sampled and 0 < after < len(times) and times[after] - times[after - 1] <= MAX_HIDDEN_S:
            share = (frame.time - times[after - 1]) / (times[after] - times[after - 1])
            box = (1 - share) * seen[after - 1][1] + share * seen[after][1]
            frame = frame.with_undetected([wearer], box[None].astype(np.float32))
        yield frame
