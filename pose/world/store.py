"""Storage of a run's people on disk between the steps; one of them is in memory at a time."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pose.structures.camera import Camera
from pose.structures.columns import row_type, views_of
from pose.structures.result_store import ResultStore
from pose.structures.skeletons import Skeleton, to_h36m17
from pose.structures.types import F32, F64, FrameResult
from pose.utils.row_file import RowFile, Rows
from pose.world.work import Person, Work

_PERSON: "np.dtype[Any]" = np.dtype([*row_type(Person).descr, ("box", "<f4", (4,))])
_WORK = row_type(Work)
_SIZE = ("bones", "height", "height_sigma", "height_given", "size_sigma")
_NO_POSE_SIGMA_MM = 1e4  # mm, sigma of frames without finite 3D


class SeenPeople(Mapping[int, Person]):
    """All lifted people of a run, by id."""

    def __init__(self, skeleton: Skeleton, camera: Camera, folder: Path | None) -> None:
        self._skeleton, self._camera, self._folder = skeleton, camera, folder
        self._stored: ResultStore | None = None
        self._own: ResultStore | None = None
        self._begins: dict[int, float] = {}  # s, first frame of each track
        self._tracks: dict[int, list[int]] = {}  # tracks of each person, in order
        self._left_out: dict[int, set[float]] = {}  # times (s) of dropped frames of each track
        self.frames, self.cuts = np.zeros(0), list[float]()

    def __enter__(self) -> "SeenPeople":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._own is not None:
            self._own.close()

    def __getitem__(self, number: int) -> Person:
        rows = self._read(number)
        finite = np.logical_and.reduce(
            [np.isfinite(rows[name]).reshape(len(rows), -1).all(axis=1) for name in ("joints", "root", "sigma")]
        )
        joints, root, sigma, times, rays, scores = (rows[name].astype(np.float64) for name in Person.__slots__)
        del rows
        if not finite.all():  # replace by a copy of a neighbouring frame, without detections
            finite_rows = np.flatnonzero(finite)
            near = (
                finite_rows[np.searchsorted(finite_rows, np.arange(len(times))).clip(max=len(finite_rows) - 1)]
                if len(finite_rows)
                else []
            )
            joints, root, sigma = (
                values[near] if len(finite_rows) else np.ones_like(values) for values in (joints, root, sigma)
            )
            sigma[~finite] = _NO_POSE_SIGMA_MM
            scores[~finite], rays[~finite] = 0, 0
        return Person(joints, root, sigma, times, rays, scores)

    def __iter__(self) -> Iterator[int]:
        return iter(self._tracks)

    def __len__(self) -> int:
        return len(self._tracks)

    def leave_out(self, track: int, times: set[float]) -> None:
        """Drop the frames of a track at `times` (s), or the whole track if no other frames remain."""
        assert self._stored is not None
        seen = [time for part, _, _ in self._stored.portions(track) for time in part.tolist()]
        left = [time for time in seen if time not in times]
        self._left_out[track] = times
        if left:
            self._begins[track] = left[0]
        else:
            del self._begins[track], self._tracks[track]

    def join(self, joined: Mapping[int, int]) -> None:
        """Merge tracks of one person, by the id of the first track of each later one from `find_joins`."""
        self._tracks = {}
        for track in sorted(self._begins, key=self._begins.__getitem__):
            self._tracks.setdefault(joined.get(track, track), []).append(track)

    def boxes(self, number: int, times: F64) -> F32:
        """Return boxes (T, 4) px (left, top, right, bottom) of a person, interpolated linearly."""
        rows = self._read(number)
        sides = [np.interp(times, rows["times"], rows["box"][:, side]) for side in range(4)]
        return np.stack(sides, axis=1).astype(np.float32)

    def _read(self, number: int) -> Rows:
        tracks = [self._read_track(track) for track in self._tracks[number]]
        return tracks[0] if len(tracks) == 1 else np.concatenate(tracks)

    def _read_track(self, track: int) -> Rows:
        assert self._stored is not None
        found, end = np.zeros(self._stored.count(track), _PERSON), 0
        for times, people, poses in self._stored.portions(track):
            rows = found[end : end + len(times)]
            rows["times"], rows["box"] = times, people["boxes"]
            for name in ("joints", "root", "sigma"):
                rows[name] = poses[name]
            pixels, scores = to_h36m17(people["keypoints"], people["scores"], self._skeleton)
            scores = np.where(np.isfinite(pixels).all(axis=-1), scores, 0)
            rows["rays"] = np.where(scores[..., None] > 0, self._camera.unproject(pixels), 0.0)
            rows["scores"], end = scores, end + len(times)
        left_out = self._left_out.get(track)
        return found if left_out is None else found[~np.isin(found["times"], list(left_out))]

    def gather(self, results: Iterable[FrameResult]) -> None:
        """Add all results of the run in order, without copies of a `ResultStore`; each track is one person."""
        if isinstance(results, ResultStore):
            self._stored = results
        else:
            self._stored = self._own = ResultStore(self._folder, self._skeleton)
        frames = []
        for result in results:
            if self._own is not None:
                self._own.write(result)
            frames.append(result.time)
            if result.people.cut:
                self.cuts.append(result.time)
            for track in result.people.ids.tolist():
                self._begins.setdefault(track, result.time)
        self.frames = np.array(frames)
        self._tracks = {track: [track] for track in self._begins}


class Works(Mapping[int, Work]):
    """Intermediate data of people, by track id, stored in a temporary file."""

    def __init__(self, folder: Path | None) -> None:
        self._rows = RowFile(_WORK, folder)
        self._sizes: dict[int, dict[str, Any]] = {}

    def __enter__(self) -> "Works":
        return self

    def __exit__(self, *exception: object) -> None:
        self._rows.close()

    def add(self, number: int, work: Work) -> None:
        self._sizes[number] = {name: getattr(work, name) for name in _SIZE}
        self._rows.append(number, rows_of(work, len(work.times), _WORK))

    def __getitem__(self, number: int) -> Work:
        rows = self._rows.read(number)
        numbers = {
            name: values if values.dtype == bool else values.astype(np.float64)
            for name, values in views_of(Work, rows).items()
        }
        return Work(**numbers, **self._sizes[number])

    def __iter__(self) -> Iterator[int]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)


def rows_of(arrays: object, count: int, kind: "np.dtype[Any]", **more: NDArray[np.generic]) -> Rows:
    """Make a structured array, and fill each field from `more` or else from an attribute of this name."""
    rows = np.zeros(count, kind)
    for name in kind.names or ():
        rows[name] = more[name] if name in more else getattr(arrays, name)
    return rows
