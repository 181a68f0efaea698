"""Joint angles as CSV, one row for each person and frame; pose/export/joint_angles.py says what they are."""

from pathlib import Path

import numpy as np

from pose.export.format import Notes, SceneFormat
from pose.export.joint_angles import NAMES, columns, joint_angles
from pose.export.space import CAMERA
from pose.export.tracks import Recording
from pose.system.whole_file import whole_file

_ROW = "%d,%.6f,%d" + ",%.2f" * (2 * len(NAMES)) + "\n"


def write(recording: Recording, people: list[int], target: Path) -> Notes:
    with whole_file(target) as hidden, hidden.open("w", encoding="utf-8", newline="\n") as file:
        file.write(",".join(["frame", "time", "person", *columns()]) + "\n")
        for person in people:
            track = recording.track(person, recording.own)
            if track is None:
                continue
            for span in track.spans():
                at = np.flatnonzero(span.known)
                angles = joint_angles(span.places[at], span.sigma[at], recording.space.up)
                cells = np.stack([angles.degrees, angles.deviations], axis=2).reshape(len(at), -1).tolist()
                index = track.first + span.start + at
                frames = (index if track.resampled else recording.frames[index]).tolist()
                for frame, time, row in zip(frames, span.times[at].tolist(), cells, strict=True):
                    file.write(_ROW % (frame, time, person, *row))
    vertical = "the picture's own" if recording.space.name == CAMERA else "that of the people"
    return [f"degrees; the vertical that the trunk's lean refers to is {vertical}"]


FORMAT = SceneFormat("-angles.csv", write)
