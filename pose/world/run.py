"""World coordinates of a whole run, from its results.

People are stored on disk; in memory is one person at a time, about 10 MB per minute.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from pose.structures.camera import Camera
from pose.structures.columns import columns_of
from pose.structures.skeletons import LIMBS, Skeleton
from pose.structures.types import F64, CameraView, Flags, FrameResult, Placed, Poses3D
from pose.utils.row_file import RowFile, Rows
from pose.world.camera_motion.path import static_path
from pose.world.clean import Steps, at_focal, prepare, put_on_floor
from pose.world.corrections import up_from_lines
from pose.world.ground import find_at_focal, find_world
from pose.world.height import PersonSize
from pose.world.moving import StaticPeople
from pose.world.scene.lines import evidence_from
from pose.world.scenes import Scene, SceneWorlds, find_scenes
from pose.world.store import SeenPeople, Works, rows_of
from pose.world.tracks import SceneTimes, find_joins, is_doubtful, jitters, overlaps_longer, person_frames

_POSES = ("joints", "root", "sigma")  # attributes of `Poses3D` that the world changes
# A person in one frame: poses under the names of their columns, and world coordinates.
_PLACED: "np.dtype[Any]" = np.dtype(
    [
        ("times", "<f8"),
        ("box", "<f4", 4),
        *((one.name, one.dtype, one.shape) for one in columns_of(Poses3D) if one.attribute in _POSES),
        *((one.name, one.dtype, one.shape) for one in columns_of(Placed)),
    ]
)
_ROWS_PER_READ = 256  # rows of a person per read


class PlacedRun:
    """Results of a run, transformed to the world. Can be iterated repeatedly, frame by frame; must be closed.

    Attributes:
        joined: New id of each joined track, by its original id.
        dropped: Ids of tracks that were left out.
        doubtful: Ids of tracks that may not show a person.
        world: Vertical and floor. With several scenes, those of the first scene in which both are known, if any
            (`pose.world.scenes`).
        scenes: Scenes with people, each with its own gravity and floor.
        heights: Body height and its standard deviation, m, by track id.
        height_intervals: Intervals that contain the body heights with a probability of 68 %, m, by track id.
        sizes: Estimated sizes by track id.
        unplaced: Ids of people in scenes without a world. Their results are those of the lifter.
        filled: Number of poses that fill gaps.
        inconsistent: Time in s for which the 2D of each limb contradicts the person's bone lengths, by track id and
            then name of the limb (`pose.structures.skeletons.LIMBS`).
        foot_velocities: Velocities of the lower foot of each person, as returned by `lower_foot_velocities`.
        path: Path of the camera at the scale of the people, with one vertical and floor for all scenes; None for a
            static camera without cuts between scenes with people.
    """

    def __init__(
        self,
        results: Iterable[FrameResult],
        skeleton: Skeleton,
        camera: Camera,
        steps: Steps | None = None,
        join: bool = True,
        folder: Path | None = None,
    ) -> None:
        """Estimate the world and transform all people to it, in unnamed temporary files in `folder`.

        `results` are frames in order that can be iterated more than once. `join` joins tracks of one person, and leaves
        out tracks that show no person (`pose.world.tracks`).
        """
        self._results = results
        self._steps = steps or Steps()
        self.path = self._steps.path
        self.unplaced: set[int] = set()
        self.joined: dict[int, int] = {}
        self.dropped: set[int] = set()
        self.doubtful: set[int] = set()
        self._left_out: dict[int, set[float]] = {}  # times (s) by track id
        self.heights: dict[int, tuple[float, float]] = {}
        self.height_intervals: dict[int, tuple[float, float]] = {}
        self.sizes: Mapping[int, PersonSize] = {}
        self.filled = 0
        self.inconsistent: dict[int, dict[str, float]] = {}
        self.foot_velocities: list[F64] = []
        self.scenes: list[Scene] = []
        self._begins: list[tuple[float, int]] = []  # start (s) and id of each person
        self._rows = RowFile(_PLACED, folder)
        try:
            with SeenPeople(skeleton, camera, folder) as people:
                people.gather(results)
                if len(people.frames):
                    self._select_tracks(people, join)
                    corrections = self._steps.corrections.renumbered(self.joined)
                    heights = dict(self._steps.heights)
                    for number, metres in corrections.heights.items():
                        heights[number] = metres
                    self._steps = replace(self._steps, heights=heights, corrections=corrections)
                self._place(people, self._steps, folder)
                if self.path is not None:
                    self.path = self.path.unknown_in(self._steps.without_world)
        except BaseException:
            self.close()
            raise

    @property
    def left_out(self) -> int:
        """Number of poses that were left out because they show no person."""
        return sum(map(len, self._left_out.values()))

    def _select_tracks(self, people: SeenPeople, join: bool) -> None:
        scenes, given = SceneTimes.of(people.frames, people.cuts), self._steps.corrections
        if join:
            for number, person in list(people.items()):
                shown = person_frames(person, scenes)
                if number not in given.kept and not shown.all():
                    self._left_out[number] = set(person.times[~shown].tolist())
                    people.leave_out(number, self._left_out[number])
            self.dropped = self._left_out.keys() - people.keys()
            still = people if self.path is None else StaticPeople(people, self.path)
            joins = find_joins(still, scenes.begins, given.apart)
            self.joined = {n: to for n, to in joins.items() if self._steps.has_world(float(people[n].times[0]))}
            people.join(self.joined)
        self.doubtful = _doubtful(people, scenes) - given.renumbered(self.joined).kept

    def _place(self, people: SeenPeople, steps: Steps, folder: Path | None) -> None:
        begins = [float(people.frames[0]) if len(people.frames) else 0.0, *people.cuts]
        floors, drawn = steps.corrections.floors, steps.corrections.lines
        with ExitStack() as opened:

            def prepared(steps: Steps) -> tuple[Works, Steps]:
                works = opened.enter_context(Works(folder))
                self._prepare(people, works, steps)
                return works, steps

            def find(run: tuple[Works, Steps]) -> SceneWorlds:
                works, steps = run
                lines = partial(evidence_from, steps.lines, begins, path=steps.path)
                return find_scenes(works, begins, steps.up, self.doubtful, steps.focal_known, floors, lines)

            works, _ = run = prepared(steps)
            if not len(works):
                self.world = find_world(works, steps.up).world
                return
            if drawn and steps.up is None:
                steps = replace(steps, up=up_from_lines(drawn, find(run).world, steps.path))
                run = works, steps
            assumed = steps
            run, found = find_at_focal(run, find, lambda focal: prepared(at_focal(assumed, people.frames, focal)))
            self._put_on_floor(people, run[0], found, run[1])

    def _prepare(self, people: SeenPeople, works: Works, steps: Steps) -> None:
        for number, person in people.items():
            if steps.has_world(float(person.times[0])):
                works.add(number, prepare(number, person, people.frames, steps))
            else:
                self.unplaced.add(number)

    def _put_on_floor(self, people: SeenPeople, works: Works, scene_worlds: SceneWorlds, steps: Steps) -> None:
        self.world, self.scenes = scene_worlds.first.ground.world, list(scene_worlds.scenes.values())
        self.sizes = {n: size for scene in self.scenes for n, size in scene.ground.sizes.items()}
        if steps.path is not None:
            self.path = scene_worlds.scaled(steps.path)
            steps = replace(steps, path=self.path)
        if len(self.scenes) > 1:
            self.path = scene_worlds.aligned(self.path or static_path(people.frames, scene_worlds.begins))
        for number, work in works.items():
            cleaned = put_on_floor(number, work, scene_worlds.at(float(work.times[0])).ground, steps)
            boxes = people.boxes(number, cleaned.times)
            doubtful = np.array(number in self.doubtful)
            named: dict[str, Any] = {
                "box": boxes,
                "joints3d": cleaned.joints,
                "world": cleaned.placed,
                "doubtful": doubtful,
                "raw_joints3d": cleaned.raw,
            }
            self._rows.append(number, rows_of(cleaned, len(cleaned.times), _PLACED, **named))
            self._begins.append((float(cleaned.times[0]), number))
            self.heights[number] = cleaned.height, cleaned.height_sigma
            self.height_intervals[number] = cleaned.height_interval
            self.filled += int(cleaned.filled.sum())
            self.foot_velocities.append(cleaned.foot_velocities)
            if cleaned.inconsistent.any():
                self.inconsistent[number] = _durations(cleaned.inconsistent, cleaned.times, people.frames)

    def close(self) -> None:
        """Delete the temporary file."""
        self._rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[FrameResult]:
        coming = sorted(self._begins, reverse=True)
        here: dict[int, _Cursor] = {}
        for result in self._results:
            while coming and coming[-1][0] <= result.time:
                _, number = coming.pop()
                here[number] = _Cursor(self._rows.portions(number, _ROWS_PER_READ))
            named = self._renamed(result)
            yield self._placed(named, here) if self._steps.has_world(result.time) else self._without_world(named)

    def _renamed(self, result: FrameResult) -> FrameResult:
        """Return the result with ids of joined tracks, without dropped people."""
        ids = result.people.ids.tolist()
        if not {*ids} & (self._left_out.keys() | self.joined.keys()):
            return result
        rows = [row for row, number in enumerate(ids) if result.time not in self._left_out.get(number, ())]
        named = np.array([self.joined.get(ids[row], ids[row]) for row in rows], np.int64)
        return FrameResult(replace(result.people[rows], ids=named), result.poses[rows])

    def _without_world(self, result: FrameResult) -> FrameResult:
        """Return the result of a scene without a world."""
        doubtful = np.array([number in self.doubtful for number in result.people.ids.tolist()], bool)
        placed = replace(Placed.unknown(len(result.people)), doubtful=doubtful)
        return FrameResult(result.people, result.poses, placed, self._view(result.time))

    def _view(self, time: float) -> CameraView | None:
        return None if self.path is None else self.path.view(time)

    def _placed(self, result: FrameResult, here: "dict[int, _Cursor]") -> FrameResult:
        """Return the result in the world, and update the people's cursors `here`."""
        row_of = {number: i for i, number in enumerate(result.people.ids.tolist())}
        placed_rows: dict[int, Rows] = {}
        for number, cursor in list(here.items()):
            row = cursor.take(result.time)
            if row is not None and (number in row_of or row["filled"][0]):
                placed_rows[number] = row
            if cursor.ended:
                del here[number]
        order = sorted(placed_rows, key=lambda number: row_of.get(number, len(row_of)))
        rows = np.concatenate([placed_rows[number] for number in order]) if order else np.zeros(0, _PLACED)
        missing = [number for number in order if number not in row_of]
        people = result.people
        if missing:
            people = people.with_undetected(missing, rows["box"][-len(missing) :])
        poses, placed = (
            {
                one.attribute: np.ascontiguousarray(rows[one.name])
                for one in columns_of(kind)
                if one.name in (_PLACED.names or ())
            }
            for kind in (Poses3D, Placed)
        )
        changed = replace(result.poses + Poses3D.unknown(len(missing)), **poses)
        return FrameResult(people, changed, Placed(**placed), self._view(result.time))


def doubtful_tracks(
    results: Iterable[FrameResult],
    skeleton: Skeleton,
    camera: Camera,
    folder: Path | None = None,
) -> set[int]:
    """Return the ids of tracks that may not show a person, for results without a world."""
    with SeenPeople(skeleton, camera, folder) as people:
        people.gather(results)
        return _doubtful(people, SceneTimes.of(people.frames, people.cuts)) if people else set()


def _doubtful(people: SeenPeople, scenes: SceneTimes) -> set[int]:
    """Return the ids of rarely visible tracks, and of tracks that jitter over another track."""
    doubtful, jittering = set(), list[int]()
    for number, person in people.items():
        if is_doubtful(person, scenes):
            doubtful.add(number)
        elif jitters(person, scenes):
            jittering.append(number)
    for number in jittering:
        one = people[number]
        if any(overlaps_longer(one, other) for n, other in people.items() if n != number and n not in doubtful):
            doubtful.add(number)
    return doubtful


def _durations(flags: Flags, times: F64, frames: F64) -> dict[str, float]:
    """Return the time in s for which each limb is flagged, of flags (T, 4)."""
    ends = np.append(frames[1:], 2 * frames[-1] - frames[-2] if len(frames) > 1 else frames[-1])
    lasts = (ends - frames)[np.searchsorted(frames, times)]
    seconds = (flags * lasts[:, None]).sum(axis=0).tolist()
    return {limb: round(value, 3) for limb, value in zip(LIMBS, seconds, strict=True) if value}


class _Cursor:
    """Cursor over the rows of one person, in order."""

    def __init__(self, portions: Iterator[Rows]) -> None:
        self._portions = portions
        self._rows = next(portions)
        self._at = 0
        self.ended = False  # whether there are no more rows

    def take(self, time: float) -> Rows | None:
        """Return the next row (1,) and advance, if its time is `time` (s) or earlier; otherwise None."""
        if self._rows["times"][self._at] > time:
            return None
        row = self._rows[self._at : self._at + 1]
        self._at += 1
        if self._at == len(self._rows):
            rest = next(self._portions, None)
            self.ended, self._at = rest is None, 0
            self._rows = self._rows if rest is None else rest
        return row
