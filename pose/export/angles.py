"""Joint angles as CSV, one row for each person and frame; pose/export/joint_angles.py defines them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.export.digits import joined, number, row, text
from pose.export.format import Notes, SceneFormat
from pose.export.joint_angles import Angles, columns, joint_angles
from pose.export.tracks import Recording
from pose.spaces import CAMERA
from pose.system.whole_file import whole_file


@dataclass(frozen=True, slots=True)
class AngleRows:
    """Angles of n frames of one person.

    Attributes:
        person: id.
        frame: (n,) index in the result, or in the resampled timeline.
        time: (n,) s.
        angles: of these frames.
        contacts: (n, 2) probability that the left and the right foot stand; NaN without a world.
    """

    person: int
    frame: NDArray[np.int64]
    time: NDArray[np.float64]
    angles: Angles
    contacts: NDArray[np.float64]


def angle_rows(recording: Recording, people: list[int]) -> Iterator[AngleRows]:
    """Person after person, in portions; frames in which a person is missing have no row."""
    for person in people:
        track = recording.track(person, recording.timeline)
        if track is None:
            continue
        contacts = track.contacts
        for span in track.spans():
            at = np.flatnonzero(span.known)
            angles = joint_angles(span.places[at], span.sigma[at], recording.space.up)
            index = track.first + span.start + at
            frame = index if track.resampled else recording.frames[index]
            yield AngleRows(person, frame, span.times[at], angles, contacts[span.start + at])


def angle_notes(recording: Recording) -> Notes:
    """What a reader of the angles must know."""
    vertical = "the image's own" if recording.space.name == CAMERA else "that of the world"
    return [f"degrees; the vertical that the trunk's lean refers to is {vertical}", "no ankles: 3D has no feet"]


def write(recording: Recording, people: list[int], target: Path) -> Notes:
    with whole_file(target) as hidden, hidden.open("wb") as file:
        file.write((",".join(["frame", "time", "person", *columns()]) + "\n").encode("ascii"))
        for part in angle_rows(recording, people):
            cells = number(np.stack([part.angles.degrees, part.angles.deviations], axis=2), 2, prefix=",")
            times = number(part.time, 6, prefix=",")
            file.write(text(joined(number(part.frame), times, f",{part.person}", row(cells), "\n")))
    return angle_notes(recording)


FORMAT = SceneFormat("-angles.csv", write)
