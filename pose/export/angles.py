"""Joint angles as CSV, one row per person and frame. pose/body/joint_angles.py defines the angles."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.body.digits import joined, merged, number, to_bytes
from pose.body.joint_angles import Angles, columns, joint_angles, with_ankles
from pose.body.soles import row_ankles
from pose.body.tracks import Selection
from pose.export.format import Notes, SceneFormat
from pose.structures.defaults import CAMERA
from pose.utils.whole_file import whole_file
from pose.world.foot_points import foot_joints


@dataclass(frozen=True, slots=True)
class AngleRows:
    """Angles of one person in n frames; contacts are NaN without world coordinates."""

    person: int  # id of the person
    frame: NDArray[np.int64]  # (n,) index of each frame in the result, or in the resampled timeline
    time: NDArray[np.float64]  # (n,) s
    angles: Angles  # joint angles in these n frames
    contacts: NDArray[np.float64]  # (n, 2) probability of contact of the left and the right foot


def angle_rows(recording: Selection, people: list[int]) -> Iterator[AngleRows]:
    """Yield the joint angles of one person after another, in portions, for the frames with the person."""
    for person in people:
        track = recording.track(person, recording.timeline)
        if track is None:
            continue
        contacts = track.contacts
        for span in track.spans():
            at = np.flatnonzero(span.known)
            ankles = track.interpolated(span.start + at, lambda rows: row_ankles(recording.table, rows))
            angles = with_ankles(joint_angles(span.joints[at], span.sigma[at], recording.space.up), ankles)
            index = track.first + span.start + at
            frame = index if track.resampled else recording.frames[index]
            yield AngleRows(person, frame, span.times[at], angles, contacts[span.start + at])


def angle_notes(recording: Selection) -> Notes:
    """Return the notes on joint angles for the export summary."""
    vertical = "the image's own" if recording.space.name == CAMERA else "that of the world"
    notes = [f"degrees; the vertical that the trunk's lean refers to is {vertical}"]
    if foot_joints(recording.table.skeleton) is None:
        notes.append(f"no ankles: {recording.table.skeleton.name} has no heels and toes")
    return notes


def write(recording: Selection, people: list[int], target: Path) -> Notes:
    """Write joint angles of the people with the ids `people` as CSV, and return notes for the export summary."""
    with whole_file(target) as hidden, hidden.open("wb") as file:
        file.write((",".join(["frame", "time", "person", *columns()]) + "\n").encode("ascii"))
        for part in angle_rows(recording, people):
            cells = number(np.stack([part.angles.degrees, part.angles.deviations], axis=2), 2, prefix=",")
            times = number(part.time, 6, prefix=",")
            file.write(to_bytes(joined(number(part.frame), times, f",{part.person}", merged(cells), "\n")))
    return angle_notes(recording)


FORMAT = SceneFormat("-angles.csv", write)
