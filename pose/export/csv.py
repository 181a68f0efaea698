"""CSV: the tidy table for spreadsheets, pandas and R. UTF-8, a point as the decimal sign."""

import csv
import io
from pathlib import Path

from pose.export.format import Notes, SceneFormat
from pose.export.table import COLUMNS, axes_note, rows
from pose.export.tracks import Recording
from pose.skeletons import H36M17
from pose.system.whole_file import whole_file


def write(recording: Recording, people: list[int], target: Path) -> Notes:
    video = _quoted(recording.name)
    # One prepared format a frame is several times faster than a writer a row.
    lines = [
        f"{video},%d,%.6f,%d,{joint},%.4f,%.4f,%.4f,%.1f,%.3f,%d,{recording.space.name}\n" for joint in H36M17.names
    ]
    frame_format = "".join(lines)
    with whole_file(target) as hidden, hidden.open("w", encoding="utf-8", newline="\n") as file:
        file.write(",".join(COLUMNS) + "\n")
        for part in rows(recording, people):
            for frame, time, values, filled in zip(
                part.frame.tolist(), part.time.tolist(), part.values.tolist(), part.filled.tolist(), strict=True
            ):
                cells: list[float] = []
                for joint, guessed in zip(values, filled, strict=True):
                    cells += (frame, time, part.person, *joint, guessed)
                file.write(frame_format % tuple(cells))
    return [f"metres, {axes_note(recording)}"]


def _quoted(text: str) -> str:
    """A cell, quoted where it must be, and safe to stand in a %-format."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow([text])
    return buffer.getvalue().replace("%", "%%")


FORMAT = SceneFormat(".csv", write)
