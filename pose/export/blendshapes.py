"""The 52 blend-shape coefficients of faces (names of ARKit) as CSV, one row per person and frame with a face."""

from pathlib import Path

import numpy as np

from pose.body.digits import joined, merged, number, to_bytes
from pose.body.face_units import expressions, face_units
from pose.body.tracks import Selection
from pose.export.format import Notes, SceneFormat
from pose.utils.whole_file import whole_file


def write(recording: Selection, people: list[int], target: Path) -> Notes:
    """Write the coefficients of the people with the ids `people` as CSV, and return notes for the export summary."""
    table, units = recording.table, face_units()
    with whole_file(target) as hidden, hidden.open("wb") as file:
        file.write((",".join(("frame", "time", "person", *units.names)) + "\n").encode("ascii"))
        for person in people:
            for rows, values in expressions(recording, person):
                frames, times = number(table.frame_index[rows]), number(table.time[rows], 6, prefix=",")
                cells = merged(number(values, 3, prefix=","))
                file.write(to_bytes(joined(frames, times, f",{person}", cells, "\n")))
    if table.face_scores is None:
        return ["faces were not estimated (pose-run --face)"]
    hidden_units = int(np.sum(~units.observed))
    return [f"0 to 1, against the person's median face; {hidden_units} units that face points do not show are empty"]


FORMAT = SceneFormat("-blendshapes.csv", write)
