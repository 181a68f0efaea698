"""Run of the pipeline over a source, with cached people in 2D and cached 3D poses where available."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, Protocol, TypedDict

import numpy as np

from pose.errors import PoseError
from pose.lifting.between import fill_between
from pose.lifting.fit.directions import BoneDirections
from pose.lifting.sides import GivenSides
from pose.networks.journal import Journal
from pose.results.cache.keys import Computes, people_key, poses_key
from pose.results.cache.store import Cache, Entry
from pose.structures.result_store import Place, ResultStore, part_types
from pose.structures.skeletons import Skeleton
from pose.structures.types import FrameResult, People
from pose.utils.json_values import check_type
from pose.utils.progress import StageTimes
from pose.utils.row_file import Rows
from pose.video import Source


class CachedStream(Protocol):
    """One stream of frames in a pipeline."""

    def lift(self, people: People) -> list[FrameResult]:
        """Lift the people of the next frame; return the frames that are now final."""

    def lift_end(self) -> list[FrameResult]:
        """End the 3D of the stream; return all remaining frames."""

    def take_sides(self, sides: Sequence[GivenSides]) -> None:
        """Set the sides of limbs that a user gives, before the first frame is lifted."""

    def take_directions(self, directions: Mapping[int, BoneDirections]) -> None:
        """Set the directions of bones that sensors measure, by track id, before the first frame is lifted."""


class CachedPipeline(Computes, Protocol):
    """Pipeline whose people and poses are cached, such as `pose.pipeline.Pipeline`."""

    times: StageTimes
    journal: Journal | None

    @property
    def skeleton(self) -> Skeleton:
        """Skeleton of the 2D keypoints."""

    def run(self, source: Source, *, stop: threading.Event | None = None) -> Iterator[FrameResult]:
        """Yield the result of every frame."""

    def session(self, image_size: tuple[int, int], focal_35mm: float | None = None) -> CachedStream:
        """Start a stream of images of one size."""


Found = Literal["nothing", "people", "everything"]
PEOPLE_PARTS, POSES_PARTS = ("frames", "people", "hands", "faces", "segments"), ("poses",)  # in an entry


class CachedRun:
    """Run of the pipeline on a source that reads stored parts of the results; `keep` stores the computed ones.

    The results are identical to those of `Pipeline.run`, bit for bit. Sources without fixed content are not stored.
    """

    def __init__(
        self,
        pipeline: CachedPipeline,
        source: Source,
        cache: Cache | None,
        stop: threading.Event | None = None,
        journal: Path | None = None,
    ) -> None:
        """Look the results up; without a cache everything is computed.

        `journal` is the file in which an interrupted run keeps what its networks found, and from which it continues.
        Used with a cache, to whose entry the results move.
        """
        self._pipeline, self._source, self._cache, self._journal = pipeline, source, cache, journal
        self._stop = stop or threading.Event()
        self._keys: dict[Found, str] = {}
        self._entries: list[Entry] = []
        self._stored: ResultStore | None = None
        # part of the results that the cache contained: "nothing", "people" (2D only) or "everything" (2D and 3D)
        self.found: Found = "nothing"
        if cache is None or (key := people_key(pipeline, source)) is None:
            return
        self._keys = {"people": key, "everything": poses_key(pipeline, source, key)}
        places: dict[str, Place] = {}
        parts: tuple[tuple[Found, tuple[str, ...]], ...] = (("people", PEOPLE_PARTS), ("everything", POSES_PARTS))
        for part, names in parts:
            entry = cache.find(self._keys[part])
            if entry is None:
                return
            try:
                new = places | entry_parts(entry, names, pipeline.skeleton)
                stored = ResultStore(None, pipeline.skeleton, existing=new)
                check_people(stored, entry.metadata) if part == "people" else check_poses(stored)
            except (ValueError, TypeError, PoseError):
                entry.close()
                cache.remove(self._keys[part])
                return
            self._entries.append(entry)
            self._stored, self.found, places = stored, part, new

    def observed(
        self, folder: Path | None, progress: Callable[[Iterator[FrameResult]], Iterable[FrameResult]]
    ) -> ResultStore:
        """Return all frames with their 2D, from the cache or computed; the caller closes the store, then this run."""
        if self._stored is not None:
            self._restore_problems(self._entries[0].metadata)
            return self._stored
        stored = ResultStore(folder, self._pipeline.skeleton)
        for result in progress(self.results()):
            stored.write(result)
        self.keep(stored)
        return stored

    def edited(
        self, stored: ResultStore, change: Callable[[People], People] | None, sides: Sequence[GivenSides]
    ) -> Iterator[FrameResult]:
        """Yield the frames of `observed` after a change of their 2D, or with None of nothing but the sides.

        `change` returns the people of a frame without those that were interpolated between samples.
        """
        if change is None and not sides and self.found != "people":
            return iter(stored)
        people = stored.people()
        return self.lifted(map(change, people) if change else map(_sampled, people), sides)

    def lifted(
        self,
        people: Iterable[People],
        sides: Sequence[GivenSides] = (),
        directions: Mapping[int, BoneDirections] | None = None,
    ) -> Iterator[FrameResult]:
        """Yield the 3D of frames with known 2D, in order, with the sides that a user gives and sensors' directions."""
        session = self._pipeline.session(self._source.info.size, self._source.info.focal_35mm)
        if sides:
            session.take_sides(sides)
        if directions is not None:
            session.take_directions(directions)
        yield from fill_between(self._lifted(people, session))

    def close(self) -> None:
        """Close the entries of the cache."""
        for entry in self._entries:
            entry.close()

    def results(self) -> Iterator[FrameResult]:
        """Yield the result of every frame, in order. Call this method only once."""
        if self._stored is None:
            if self._journal is None or not self._keys:
                yield from self._pipeline.run(self._source, stop=self._stop)
                return
            with Journal(self._journal, self._keys["people"]) as journal:
                self._pipeline.journal = journal
                try:
                    yield from self._pipeline.run(self._source, stop=self._stop)
                finally:
                    self._pipeline.journal = None
            return
        with closing(self):
            if self.found == "everything":
                yield from self._cached(self._stored)
            else:
                yield from self.lifted(map(_sampled, self._stored.people()))
            if not self._stop.is_set():
                self._restore_problems(self._entries[0].metadata)

    def _cached(self, stored: ResultStore) -> Iterator[FrameResult]:
        remaining = iter(stored)
        while not self._stop.is_set():
            with self._pipeline.times.measure("cache"):
                result = next(remaining, None)
            if result is None:
                return
            yield result

    def _lifted(self, frames: Iterable[People], session: CachedStream) -> Iterator[FrameResult]:
        for people in frames:
            if self._stop.is_set():
                break
            yield from session.lift(people)
        yield from session.lift_end()

    def _restore_problems(self, metadata: Mapping[str, Any]) -> None:
        """Set the warnings of the source, which name another file with the same content."""
        name, source = metadata["name"], self._source
        source.problems[:] = [text.replace(name, source.name) for text in metadata["problems"]]
        cut_short = metadata["cut_short"]
        source.cut_short = None if cut_short is None else cut_short.replace(name, source.name)

    def keep(self, results: ResultStore) -> None:
        """Store all results of the run, unless they were read from the cache or the run was stopped."""
        if not self._keys or self._stop.is_set() or self.found == "everything":
            return
        source = self._source
        said = {"name": source.name, "problems": source.problems, "cut_short": source.cut_short}
        if self.found == "nothing":
            self._write(self._keys["people"], results, PEOPLE_PARTS, said)
        self._write(self._keys["everything"], results, POSES_PARTS, {})
        if self._journal is not None:
            self._journal.unlink(missing_ok=True)

    def _write(self, key: str, results: ResultStore, names: Sequence[str], metadata: dict[str, Any]) -> None:
        assert self._cache is not None
        with self._pipeline.times.measure("cache"), self._cache.create(key) as entry:
            for name in names:
                for rows in results.parts[name].blocks():
                    entry.write(rows.tobytes())
            entry.commit({**metadata, "rows": [len(results.parts[name]) for name in names]})


def _sampled(people: People) -> People:
    """Return the people without those that were interpolated between samples."""
    return people[~people.interpolated] if people.interpolated.any() else people


MAX_ABS = 1e7  # largest valid absolute value, in px, m or mm


class PeopleMetadata(TypedDict):
    """Metadata of a cache entry of people in 2D; `cut_short` says that the end of the video is missing."""

    rows: list[int]  # number of rows of each part
    name: str  # name of the source
    problems: list[str]  # warnings about the source
    cut_short: str | None  # message that the end of the video is missing; None if it is complete


def entry_parts(entry: Entry, names: Sequence[str], skeleton: Skeleton) -> dict[str, Place]:
    """Return the parts of results that an entry contains."""
    counts: Any = entry.metadata.get("rows")
    place, parts = entry.file.tell(), dict[str, Place]()
    check_type(counts, list[int])
    if len(counts) != len(names) or min(counts) < 0:
        raise ValueError("expected the number of rows of each part")
    for name, count in zip(names, counts, strict=True):
        parts[name] = entry.file, place, count
        place += count * part_types(skeleton)[name].itemsize
    if place != entry.end:
        raise ValueError("another size than its rows")
    return parts


def check_people(stored: ResultStore, metadata: Mapping[str, Any]) -> None:
    """Validate stored people in 2D."""
    check_type(metadata, PeopleMetadata)
    frames = np.concatenate([np.zeros(0, stored.parts["frames"].kind), *stored.parts["frames"].blocks()])
    frame, counts = frames["frame"], frames["frame"]["people"]
    if (frame["index"] != np.arange(len(frames))).any() or not (np.diff(frame["time"], append=np.inf) > 0).all():
        raise ValueError("frames are not in order")
    present = np.stack([counts, counts, counts * frame["hands"], counts * frame["faces"], frame["segments"]], axis=1)
    ends = np.cumsum(present, axis=0)
    if (present < 0).any() or (frames["first"] != ends - present).any():
        raise ValueError("rows do not match the frames")
    totals = ends[-1] if len(frames) else np.zeros(5, np.int64)
    if [len(stored.parts[name]) for name in ("people", "hands", "faces", "segments")] != totals[[0, 2, 3, 4]].tolist():
        raise ValueError("frames are missing")
    ids = [np.zeros(0, np.int64)]
    for rows in stored.parts["people"].blocks():
        ids.append(rows["people"]["ids"])
        check_numbers(rows["people"])
    of_rows, all_ids = np.repeat(np.arange(len(frames)), counts), np.concatenate(ids)
    order = np.lexsort((all_ids, of_rows))
    if ((np.diff(all_ids[order]) == 0) & (np.diff(of_rows[order]) == 0)).any() or (all_ids < 0).any():
        raise ValueError("invalid person ids")
    for name in ("hands", "faces", "segments"):
        for rows in stored.parts[name].blocks():
            check_numbers(rows)


def check_poses(stored: ResultStore) -> None:
    """Validate stored 3D poses of the people."""
    if len(stored.parts["poses"]) != len(stored.parts["people"]):
        raise ValueError("poses do not match the people")
    for rows in stored.parts["poses"].blocks():
        check_numbers(rows)


def check_numbers(rows: Rows) -> None:
    """Check that the floating-point numbers of rows are moderate, or unknown."""
    for name in rows.dtype.names or ():
        values = rows[name]
        if values.dtype.kind == "f" and (np.abs(values[np.isfinite(values)]) > MAX_ABS).any():
            raise ValueError("numbers are out of range")
