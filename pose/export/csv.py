"""CSV: the tidy table for spreadsheets, pandas and R. UTF-8, with decimal points."""

import csv
import io
import re
from pathlib import Path

import numpy as np

from pose.body.digits import encoded, joined, merged, number, to_bytes
from pose.body.tracks import Selection
from pose.export.format import Notes, SceneFormat
from pose.export.table import OBSERVERS, axes_note, columns, observer_names, rows
from pose.utils.whole_file import whole_file


def write(recording: Selection, people: list[int], target: Path) -> Notes:
    """Write the joints of the people with the ids `people` as CSV, and return notes for the export summary."""
    video, space, names = _quoted(recording.name), recording.space.name, columns(recording)
    observers = encoded(observer_names())
    with whole_file(target) as hidden, hidden.open("wb") as file:
        file.write((",".join(names) + "\n").encode("ascii"))
        for part in rows(recording, people):
            head = joined(f"{video},", number(part.frame), number(part.time, 6, prefix=","))
            head = joined(head, number(part.person, prefix=","), ",")
            positions = merged(number(part.values[..., :3], 4, prefix=","), 2)
            sigma = joined(number(part.values[..., 3], 1, prefix=","), number(part.root_sigma, 1, prefix=",")[:, None])
            score = number(part.values[..., 4], 3, prefix=",")
            filled = number(part.filled, prefix=",")
            doubtful = number(np.isin(part.person, recording.table.doubtful_ids), prefix=",")
            after = joined(doubtful, number(part.partial, prefix=","), f",{space}")[:, None]
            end = joined(",", observers[part.observers]) if OBSERVERS in names else ""
            cells = joined(head[:, None], encoded(part.names), positions, sigma, score, filled, after, end, "\n")
            file.write(to_bytes(cells))
    return [f"metres, {axes_note(recording)}"]


_FORMULA = re.compile(r"\s*[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]")  # what spreadsheets take for a formula


def _quoted(cell: str) -> str:
    """Return a CSV cell, quoted if necessary, which no spreadsheet takes for a formula."""
    if _FORMULA.match(cell):
        cell = f"'{cell}"
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow([cell])
    return buffer.getvalue()


FORMAT = SceneFormat(".csv", write, options=("z_up",))
