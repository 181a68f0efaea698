"""Tracks and fused motions in temporary files mapped into memory, and the tracks of a camera's results."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pose.lifting.repair.person import with_lifted_sides
from pose.multiview.fuse import Fused
from pose.multiview.types import ViewTrack
from pose.structures.columns import KEYPOINTS, ColumnSet, column, row_type, views_of
from pose.structures.skeletons import Skeleton, to_h36m17
from pose.structures.types import F32, I64, U8, FrameResult
from pose.utils.row_file import RowFile, Rows
from pose.utils.whole_file import file_errors

TRACK_ROW = row_type(ViewTrack)  # one frame of a track, 0.5 kB
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
    arrays = views_of(ViewTrack, rows)
    arrays["times"] = np.ascontiguousarray(arrays["times"])  # contiguous, because it is searched often
    return ViewTrack(camera, number, **arrays)


def _rows_at(one: ViewTrack, other: ViewTrack, places: np.ndarray) -> Rows:
    """Return the rows at given indices of two concatenated tracks."""
    rows = np.empty(len(places), TRACK_ROW)
    of_one = places < len(one)
    for name in TRACK_ROW.names or ():
        rows[name][of_one] = getattr(one, name)[places[of_one]]
        rows[name][~of_one] = getattr(other, name)[places[~of_one] - len(one)]
    return rows


@dataclass(frozen=True, slots=True)
class FusedMotion(ColumnSet):
    """Motion of one person, fused from all cameras, in K frames."""

    frames: I64 = column("", dtype="<i8")  # (K,) indices on the time line, increasing
    joints: F32 = column("", (17, 3))  # (K, 17, 3) m in the frame of the first camera
    sigma: F32 = column("", (17,))  # (K, 17) mm, the radius that contains the true joint with probability 0.68
    # (K, C) px, median reprojection error over joints, NaN where a camera does not see the person
    residual: F32 = column("", (KEYPOINTS,))
    # (K, 17), bit c is set if camera c detected the joint close to its fused position
    seen_by: U8 = column("", (17,), "u1")


def motion_row(cameras: int) -> "np.dtype[Any]":
    """Return the structured type of one frame of a motion (0.3 kB), for a number of cameras."""
    return row_type(FusedMotion, cameras)


def motion_rows(fused: Fused, fps: float) -> Rows:
    """Convert one person's fused joints to a structured array with one entry per frame."""
    rows = np.zeros(len(fused.instants), motion_row(len(fused.residual)))
    rows["frames"] = np.rint(fused.instants * fps)
    rows["joints"], rows["sigma"], rows["residual"] = fused.joints, fused.sigma, fused.residual.T
    seen = fused.observed.astype(np.int64)
    rows["seen_by"] = (seen << np.arange(len(seen))[:, None, None]).sum(axis=0)
    return rows


def stored_motions(portions: Iterable[Rows], counts: Sequence[int], kind: "np.dtype[Any]") -> list[FusedMotion]:
    """Store the motions of people, given by rows, in one memory-mapped temporary file; small ones in memory."""
    if not counts:
        return []
    if sum(counts) > MAX_ROWS_IN_MEMORY:
        rows = _mapped(portions, kind)
    else:
        rows = np.concatenate([np.zeros(0, kind), *portions])
    return [FusedMotion(**views_of(FusedMotion, part)) for part in np.split(rows, np.cumsum(counts)[:-1])]


def scaled_motions(motions: Sequence[FusedMotion], factor: float) -> list[FusedMotion]:
    """Return motions with joints and sigma multiplied by a factor, stored as by `stored_motions`."""
    if not motions:
        return []
    kind = motion_row(motions[0].residual.shape[1])
    portions = (rows for motion in motions for rows in _scaled_rows(motion, factor, kind))
    return stored_motions(portions, [len(motion) for motion in motions], kind)


def _scaled_rows(motion: FusedMotion, factor: float, kind: "np.dtype[Any]") -> Iterator[Rows]:
    for first in range(0, len(motion), BATCH_ROWS):
        part = motion[first : first + BATCH_ROWS]
        rows = np.zeros(len(part), kind)
        for name in kind.names or ():
            rows[name] = getattr(part, name) * factor if name in ("joints", "sigma") else getattr(part, name)
        yield rows


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
