"""The tidy table that CSV and Parquet hold: one row for each joint of each person and frame."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.export.tracks import Recording, Track
from pose.skeletons import H36M17
from pose.spaces import CAMERA

COLUMNS = ("video", "frame", "time", "person", "joint", "x", "y", "z", "sigma_mm", "score", "filled", "space")


@dataclass(frozen=True, slots=True)
class Rows:
    """n frames of one person. frame: (n,) index in the result, or in the resampled timeline. time: (n,) s. values: (n,
    17, 5) x, y, z m, sigma mm, 2D score. filled: (n, 17) True where no 2D joint was seen and the lifter filled it in.
    """

    person: int
    frame: NDArray[np.int64]
    time: NDArray[np.float64]
    values: NDArray[np.float64]
    filled: NDArray[np.bool_]

    @property
    def joints(self) -> int:
        return len(H36M17)


def rows(recording: Recording, people: list[int]) -> Iterator[Rows]:
    """Person after person, in portions; frames in which a person is missing have no row."""
    for person in people:
        track = recording.track(person, recording.timeline)
        if track is not None:
            yield from _of_person(recording, track)


def _of_person(recording: Recording, track: Track) -> Iterator[Rows]:
    for span in track.spans():
        at = np.flatnonzero(span.known)
        index = track.first + span.start + at
        places = recording.space.to_table(span.places[at])
        values = np.concatenate([places, span.sigma[at, :, None], span.score[at, :, None]], axis=2)
        frame = index if track.resampled else recording.frames[index]
        yield Rows(track.person, frame, span.times[at], values, span.score[at] == 0)


def axes_note(recording: Recording) -> str:
    """What x, y and z mean in a table."""
    return "x right, y down, z forward, as in poses.npz" if recording.space.name == CAMERA else "y up"
