"""Conversion of one camera's results to tracks."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from pose.lifting.repair.sides import with_lifted_sides
from pose.multiview.stored import BATCH_ROWS, TRACK_ROW, stored_tracks, track_rows
from pose.multiview.types import ViewTrack
from pose.structures.skeletons import Skeleton, to_h36m17
from pose.structures.types import F32, FrameResult
from pose.utils.row_file import RowFile

Row = tuple[F32, F32, F32, F32, F32]  # keypoints, scores, joints, root and sigma of one frame, as in `ViewTrack`
MIN_FRAMES = 5  # minimum frames of a useful track


def collect_tracks(
    results: Iterable[FrameResult], skeleton: Skeleton, camera: int, folder: Path | None = None
) -> list[ViewTrack]:
    """Return the tracks of one camera with enough frames, stored in a temporary file."""
    newest: dict[int, list[tuple[float, *Row]]] = {}
    pending = 0
    with RowFile(TRACK_ROW, folder) as rows:
        for result in results:
            for number, row in rows_of(result, skeleton):
                newest.setdefault(number, []).append((result.time, *row))
                pending += 1
            if pending >= BATCH_ROWS:
                _write(rows, newest)
                pending = 0
        _write(rows, newest)
        kept = [number for number in sorted(rows.keys) if rows.count(number) >= MIN_FRAMES]
        return stored_tracks(camera, rows, kept, folder)


def _write(rows: RowFile, newest: dict[int, list[tuple[float, *Row]]]) -> None:
    """Move rows from memory to the file."""
    for number, block in newest.items():
        rows.append(number, track_rows(block))
    newest.clear()


def rows_of(result: FrameResult, skeleton: Skeleton) -> list[tuple[int, Row]]:
    """Return track id and data, as in a frame of `ViewTrack`, of each person in a frame who has a 3D pose."""
    if not len(result.people):
        return []
    sided, scores = with_lifted_sides(result, skeleton)
    xy, lifted_scores = to_h36m17(sided, scores, skeleton)
    poses, found = result.poses, []
    for row, number in enumerate(result.people.ids.tolist()):
        if np.isfinite(poses.joints[row]).all() and np.isfinite(poses.root[row]).all():
            found.append((number, (xy[row], lifted_scores[row], poses.joints[row], poses.root[row], poses.sigma[row])))
    return found


def track_of(camera: int, number: int, seen: Sequence[tuple[float, Row]]) -> ViewTrack:
    """Make a track from its frames, at least one: time in s and data from `rows_of`."""
    times = np.array([time for time, _ in seen])
    return ViewTrack(camera, number, times, *map(np.array, zip(*(row for _, row in seen), strict=True)))
