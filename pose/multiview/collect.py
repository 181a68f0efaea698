"""Conversion of one camera's results to tracks."""

from collections.abc import Iterable, Sequence

import numpy as np

from pose.multiview.types import ViewTrack
from pose.repair.sides import with_lifted_sides
from pose.skeletons import Skeleton, to_h36m17
from pose.types import F32, FrameResult

Row = tuple[F32, F32, F32, F32, F32]  # keypoints, scores, joints, root and sigma of one frame, as in `Track`
FEWEST_FRAMES = 5  # minimum frames of a useful track
BLOCK = 256  # rows of a track that are held as separate arrays


def collect_tracks(results: Iterable[FrameResult], skeleton: Skeleton, camera: int) -> list[ViewTrack]:
    """All tracks of one camera.

    Args:
        results: Results of its pipeline.
        skeleton: Joint set of its keypoints.
        camera: Index of the camera.
    """
    found: dict[int, _Rows] = {}
    for result in results:
        for number, row in rows_of(result, skeleton):
            found.setdefault(number, _Rows()).add((np.array(result.time), *row))
    tracks = ((number, found.pop(number).arrays()) for number in sorted(found))
    return [ViewTrack(camera, number, *arrays) for number, arrays in tracks if len(arrays[0]) >= FEWEST_FRAMES]


def rows_of(result: FrameResult, skeleton: Skeleton) -> list[tuple[int, Row]]:
    """The people of a frame with 3D: id, and their part of a track."""
    if not len(result.people):
        return []
    sided, scores = with_lifted_sides(result, skeleton)
    xy, sure = to_h36m17(sided, scores, skeleton)
    poses, found = result.poses, []
    for row, number in enumerate(result.people.ids.tolist()):
        if np.isfinite(poses.joints[row]).all() and np.isfinite(poses.root[row]).all():
            found.append((number, (xy[row], sure[row], poses.joints[row], poses.root[row], poses.sigma[row])))
    return found


def track_of(camera: int, number: int, seen: Sequence[tuple[float, Row]]) -> ViewTrack:
    """A track from its times, s, and rows; at least one."""
    times = np.array([time for time, _ in seen])
    return ViewTrack(camera, number, times, *map(np.stack, zip(*(row for _, row in seen), strict=True)))


class _Rows:
    """Rows of a track, in blocks: an array for each row would need twice the memory of the track."""

    def __init__(self) -> None:
        self._blocks: list[list[np.ndarray]] = []
        self._rows: list[tuple[np.ndarray, ...]] = []

    def add(self, row: tuple[np.ndarray, ...]) -> None:
        """Append a row; its arrays are copied later."""
        self._rows.append(row)
        if len(self._rows) == BLOCK:
            self._close()

    def _close(self) -> None:
        self._blocks.append([np.stack(column) for column in zip(*self._rows, strict=True)])
        self._rows = []

    def arrays(self) -> list[np.ndarray]:
        """All rows, one array for each column."""
        if self._rows:
            self._close()
        return [np.concatenate(column) for column in zip(*self._blocks, strict=True)]
