"""Tracks and motions in temporary files mapped into memory; only the rows in use of a long recording occupy memory."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pose.multiview.types import ViewTrack
from pose.utils.row_file import RowFile, Rows
from pose.utils.whole_file import file_errors

# One frame of a track. 496 bytes.
TRACK_ROW = np.dtype(
    [
        ("times", np.float64),
        ("keypoints", np.float32, (17, 2)),
        ("scores", np.float32, (17,)),
        ("joints", np.float32, (17, 3)),
        ("root", np.float32, (3,)),
        ("sigma", np.float32, (17,)),
    ]
)
PARTS = TRACK_ROW.names or ()
BATCH_ROWS = 4096  # rows in memory while tracks are written
# Maximum rows (16 MB) of joined tracks or motions that stay in memory: each mapped file is an open file.
MAX_ROWS_IN_MEMORY = 32_768


def stored_tracks(camera: int, rows: RowFile, numbers: Sequence[int], folder: Path | None = None) -> list[ViewTrack]:
    """Copy tracks from a file of `TRACK_ROW` to one temporary file mapped into memory, deleted with its last track."""
    ends = np.cumsum([0, *(rows.count(number) for number in numbers)])
    if not ends[-1]:
        return []
    mapped = _mapped((part for number in numbers for part in rows.portions(number, BATCH_ROWS)), TRACK_ROW, folder)
    spans = zip(numbers, ends[:-1], ends[1:], strict=True)
    return [_track(camera, number, mapped[first:last]) for number, first, last in spans]


def stored_rows(portions: Iterable[Rows], kind: "np.dtype[Any]", count: int) -> Rows:
    """Store a structured array in a memory-mapped temporary file; up to `MAX_ROWS_IN_MEMORY` rows in memory."""
    if count > MAX_ROWS_IN_MEMORY:
        return _mapped(portions, kind)
    rows, first = np.zeros(count, kind), 0
    for part in portions:
        rows[first : first + len(part)] = part
        first += len(part)
    return rows


def _mapped(portions: Iterable[Rows], kind: "np.dtype[Any]", folder: Path | None = None) -> Rows:
    """Write at least one row to a temporary file, and map it. The file is deleted with the last array that uses it."""
    folder = folder or Path(tempfile.gettempdir())
    with file_errors(folder), tempfile.TemporaryFile(dir=folder) as file:
        for part in portions:
            file.write(np.ascontiguousarray(part).data)
        file.flush()
        return np.asarray(np.memmap(file, kind, mode="r"))


def joined_track(one: ViewTrack, other: ViewTrack) -> ViewTrack:
    """Join two tracks of one camera that have no common times. The result has the id of `one`."""
    order = np.argsort(np.concatenate([one.times, other.times]), kind="stable")
    if len(order) <= MAX_ROWS_IN_MEMORY:
        return _track(one.camera, one.number, _rows_at(one, other, order))
    with RowFile(TRACK_ROW) as rows:
        for first in range(0, len(order), BATCH_ROWS):
            rows.append(one.number, _rows_at(one, other, order[first : first + BATCH_ROWS]))
        return stored_tracks(one.camera, rows, [one.number])[0]


def track_rows(columns: Iterable[Sequence[object]]) -> Rows:
    """Return an array of `TRACK_ROW`, one entry per frame, from columns as in `ViewTrack`."""
    return np.array([tuple(row) for row in columns], TRACK_ROW)


def _track(camera: int, number: int, rows: Rows) -> ViewTrack:
    times = np.ascontiguousarray(rows["times"])  # contiguous, because it is searched often
    return ViewTrack(camera, number, times, *(rows[name] for name in PARTS[1:]))


def _rows_at(one: ViewTrack, other: ViewTrack, places: np.ndarray) -> Rows:
    """Return the rows at given indices of two concatenated tracks."""
    rows = np.empty(len(places), TRACK_ROW)
    of_one = places < len(one)
    for name in PARTS:
        rows[name][of_one] = getattr(one, name)[places[of_one]]
        rows[name][~of_one] = getattr(other, name)[places[~of_one] - len(one)]
    return rows
