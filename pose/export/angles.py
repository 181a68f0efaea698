"""Joint angles as CSV, one row for each person and frame; pose/export/joint_angles.py says what they are."""

from pathlib import Path

import numpy as np

from pose.export.digits import joined, number, row, text
from pose.export.format import Notes, SceneFormat
from pose.export.joint_angles import columns, joint_angles
from pose.export.tracks import Recording
from pose.spaces import CAMERA
from pose.system.whole_file import whole_file


def write(recording: Recording, people: list[int], target: Path) -> Notes:
    with whole_file(target) as hidden, hidden.open("wb") as file:
        file.write((",".join(["frame", "time", "person", *columns()]) + "\n").encode("ascii"))
        for person in people:
            track = recording.track(person, recording.timeline)
            if track is None:
                continue
            for span in track.spans():
                at = np.flatnonzero(span.known)
                angles = joint_angles(span.places[at], span.sigma[at], recording.space.up)
                cells = number(np.stack([angles.degrees, angles.deviations], axis=2), 2, prefix=",")
                index = track.first + span.start + at
                frames = number(index if track.resampled else recording.frames[index])
                times = number(span.times[at], 6, prefix=",")
                file.write(text(joined(frames, times, f",{person}", row(cells), "\n")))
    vertical = "the image's own" if recording.space.name == CAMERA else "that of the world"
    return [f"degrees; the vertical that the trunk's lean refers to is {vertical}", "no ankles: 3D has no feet"]


FORMAT = SceneFormat("-angles.csv", write)
