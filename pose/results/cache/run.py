"""Run of the pipeline over a source, with cached people in 2D and cached 3D poses where available."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Literal, Protocol

from pose.lifting.between import fill_between
from pose.results.cache.checks import check_people, check_poses
from pose.results.cache.keys import Computes, people_key, poses_key
from pose.results.cache.store import Cache, Entry, NewEntry
from pose.results.records import PeopleRecords, PosesRecords
from pose.structures.skeletons import Skeleton
from pose.structures.types import Frame, FrameResult, People
from pose.utils.prefetch import prefetch
from pose.utils.times import StageTimes
from pose.video import Source


class CachedStream(Protocol):
    """One stream of frames in a pipeline."""

    def observe(self, frame: Frame) -> list[People]:
        """Detect and track the people of the next frame; return the frames that are now final in 2D."""

    def observe_end(self) -> list[People]:
        """End the 2D of the stream; return all remaining frames."""

    def lift(self, people: People) -> list[FrameResult]:
        """Lift the people of the next frame; return the frames that are now final."""

    def lift_end(self) -> list[FrameResult]:
        """End the 3D of the stream; return all remaining frames."""


class CachedPipeline(Computes, Protocol):
    """Pipeline whose people and poses are cached, such as `pose.pipeline.Pipeline`."""

    times: StageTimes

    @property
    def skeleton(self) -> Skeleton:
        """Skeleton of the 2D keypoints."""

    def run(self, source: Source, *, stop: threading.Event | None = None) -> Iterator[FrameResult]:
        """Yield the result of every frame."""

    def session(self, image_size: tuple[int, int], focal_35mm: float | None = None) -> CachedStream:
        """Start a stream of images of one size."""


Found = Literal["nothing", "people", "everything"]


def cached_results(
    pipeline: CachedPipeline, source: Source, cache: Cache | None, stop: threading.Event
) -> tuple[Iterator[FrameResult], Found]:
    """Run the pipeline on a source, with a cache of earlier results if there is one.

    Args:
        pipeline: The pipeline.
        source: The source.
        cache: Cache of results; None computes everything.
        stop: Event that ends the run early when it is set.

    Returns:
        The results of all frames, in order, and the part of them that the cache contained.
    """
    if cache is None:
        return pipeline.run(source, stop=stop), "nothing"
    run = CachedRun(pipeline, source, cache)
    return run.results(stop), run.found


class CachedRun:
    """Run of the pipeline that reads cached parts and stores the computed ones.

    The results are identical to those of `Pipeline.run`, bit for bit.
    """

    def __init__(self, pipeline: CachedPipeline, source: Source, cache: Cache) -> None:
        self._pipeline, self._source, self._cache = pipeline, source, cache
        self._people_key = people_key(pipeline, source)
        self._people: Entry | None = None
        self._poses: Entry | None = None
        # Part of the results that the cache contained at the start: "nothing", "people" (2D only) or "everything" (2D
        # and 3D).
        self.found: Found = "nothing"
        if self._people_key is None:
            return
        self._poses_key = poses_key(pipeline, source, self._people_key)
        self._people = self._valid_entry(self._people_key, poses=False)
        if self._people is not None:
            self._poses = self._valid_entry(self._poses_key, poses=True)
            self.found = "people" if self._poses is None else "everything"

    def _valid_entry(self, key: str, *, poses: bool) -> Entry | None:
        """Return the entry of a key if all its frames are valid; otherwise remove the entry and return None."""
        entry = self._cache.find(key)
        if entry is None:
            return None
        position = entry.file.tell()
        try:
            if poses:
                assert self._people is not None
                check_poses(entry, self._people, len(self._pipeline.skeleton))
                self._people.file.seek(position)
            else:
                check_people(entry, len(self._pipeline.skeleton))
        except (ValueError, TypeError, OSError):
            entry.close()
            self._cache.remove(key)
            if poses and self._people is not None:
                self._people.file.seek(position)
            return None
        entry.file.seek(position)
        return entry

    def results(self, stop: threading.Event | None = None) -> Iterator[FrameResult]:
        """Yield the result of every frame, in order. Call this method only once.

        Args:
            stop: Event that ends the run early when it is set.
        """
        if self._people_key is None:
            yield from self._pipeline.run(self._source, stop=stop)
            return
        stop = stop or threading.Event()
        with ExitStack() as stack:
            for entry in (self._people, self._poses):
                if entry is not None:
                    stack.callback(entry.close)
            if self._people is not None and self._poses is not None:
                yield from fill_between(self._cached(self._people, self._poses, stop))
                return
            session = self._pipeline.session(self._source.info.size, self._source.info.focal_35mm)
            people = self._tracked(session, stop) if self._people is None else self._cached_people(self._people, stop)
            new_entry = stack.enter_context(self._cache.create(self._poses_key))
            yield from fill_between(self._lifted(session, people, new_entry, stop))

    def _cached(self, people: Entry, poses: Entry, stop: threading.Event) -> Iterator[FrameResult]:
        records = PosesRecords()
        for person in self._cached_people(people, stop):
            with self._pipeline.times.measure("cache"):
                result = FrameResult(person, records.read(poses.file))
            yield result

    def _cached_people(self, entry: Entry, stop: threading.Event) -> Iterator[People]:
        records = PeopleRecords(len(self._pipeline.skeleton))
        for _ in range(entry.metadata["frames"]):
            if stop.is_set():
                return
            with self._pipeline.times.measure("cache"):
                people = records.read(entry.file)
            yield people
        name, source = entry.metadata["name"], self._source
        source.problems[:] = [text.replace(name, source.name) for text in entry.metadata["problems"]]
        cut_short = entry.metadata["cut_short"]
        source.cut_short = None if cut_short is None else cut_short.replace(name, source.name)

    def _tracked(self, session: CachedStream, stop: threading.Event) -> Iterator[People]:
        """Compute, store and yield the tracked people of every frame in 2D."""
        assert self._people_key is not None
        source, times = self._source, self._pipeline.times
        records, frames = PeopleRecords(len(self._pipeline.skeleton)), 0

        def observed() -> Iterator[People]:
            for frame in prefetch(source, times, stop):
                yield from session.observe(frame)
            yield from session.observe_end()

        with self._cache.create(self._people_key) as new_entry:
            for people in observed():
                with times.measure("cache"):
                    new_entry.write(records.to_bytes(people))
                frames += 1
                yield people
            if not stop.is_set():
                metadata = {"name": source.name, "problems": source.problems, "cut_short": source.cut_short}
                new_entry.commit({"frames": frames, **metadata})

    def _lifted(
        self, session: CachedStream, people: Iterator[People], new_entry: NewEntry, stop: threading.Event
    ) -> Iterator[FrameResult]:
        """Compute, store and yield the results with 3D poses of the given people."""
        records, frames = PosesRecords(), 0

        def keep(results: list[FrameResult]) -> list[FrameResult]:
            nonlocal frames
            frames += len(results)
            with self._pipeline.times.measure("cache"):
                for result in results:
                    new_entry.write(records.to_bytes(result.poses))
            return results

        for person in people:
            yield from keep(session.lift(person))
        yield from keep(session.lift_end())
        if not stop.is_set():
            new_entry.commit({"frames": frames})
