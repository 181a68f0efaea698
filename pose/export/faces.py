"""Head pose and openness of eyes, brows and mouth as CSV, one row per person and frame with a face."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pose.body.digits import joined, merged, number, to_bytes
from pose.body.tracks import Selection
from pose.export.format import Notes, SceneFormat
from pose.results import Recording
from pose.structures.face_points import ANGLES, MEASURES, head_angles, measures
from pose.structures.types import I64
from pose.utils.whole_file import whole_file

_COLUMNS = ("frame", "time", "person", "score", *(f"{name}_deg" for name in ANGLES), *MEASURES)
_ROWS_PER_PORTION = 256  # rows in memory at a time; a face has 468 points


def write(recording: Selection, people: list[int], target: Path) -> Notes:
    """Write head poses of the people with the ids `people` as CSV, and return notes for the export summary."""
    scores = recording.table.face_scores
    with whole_file(target) as hidden, hidden.open("wb") as file:
        file.write((",".join(_COLUMNS) + "\n").encode("ascii"))
        for person in people if scores is not None else ():
            for part in _seen(recording, person):
                file.write(_lines(recording.table, part, person))
    if scores is None:
        return ["faces were not estimated (pose-run --face)"]
    return ["the video's own frames; degrees against the line of sight; ratios: docs/guides/face.md"]


def _seen(recording: Selection, person: int) -> Iterator[I64]:
    """Yield the indices of the result's rows in which the person's face is detected, in portions."""
    scores, own = recording.table.face_scores, recording.rows_of(person)
    assert scores is not None
    for start in range(0, len(own), _ROWS_PER_PORTION):
        rows = own[start : start + _ROWS_PER_PORTION]
        rows = rows[np.asarray(scores[rows] > 0)]
        if len(rows):
            yield rows


def _lines(table: Recording, rows: I64, person: int) -> bytes:
    assert table.face_keypoints is not None
    assert table.face_scores is not None
    points = np.asarray(table.face_keypoints[rows])
    frames, times = number(table.frame_index[rows]), number(table.time[rows], 6, prefix=",")
    score = number(table.face_scores[rows], 3, prefix=",")
    angles, opened = (merged(number(values, 3, prefix=",")) for values in (head_angles(points), measures(points)))
    return to_bytes(joined(frames, times, f",{person}", score, angles, opened, "\n"))


FORMAT = SceneFormat("-faces.csv", write)
