"""A whole run put into its world: results in, the same results cleaned and placed out.

What is known of people lies on disk meanwhile; in memory is one person at a time, about 10 MB for a minute of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from pose.camera import Camera
from pose.skeletons import H36M17, LIMBS, Skeleton
from pose.system.row_file import RowFile, Rows
from pose.types import F64, Flags, FrameResult, Placed, Poses3D
from pose.world.clean import Steps, prepare, put_on_floor
from pose.world.ground import find_world
from pose.world.join import find_joins
from pose.world.moving import StaticPeople
from pose.world.rules import RULES, Rules
from pose.world.sizes import Size
from pose.world.store import SeenPeople, Works, rows_of
from pose.world.tracks import Scenes, is_doubtful, shown_frames

_J = len(H36M17)
_PLACED: "np.dtype[Any]" = np.dtype(
    [
        ("times", "<f8"), ("joints", "<f4", (_J, 3)), ("root", "<f4", 3), ("placed", "<f4", (_J, 3)),
        ("sigma", "<f4", _J), ("root_sigma", "<f4"), ("contacts", "<f4", 2), ("filled", "?"), ("moved", "<f4"),
        ("box", "<f4", 4), ("partial", "?"), ("inconsistent", "?", len(LIMBS)),
    ]
)  # fmt: skip
_AT_ONCE = 256  # rows of a person that are read together


class PlacedRun:
    """The results of a run in their world. Iterate over it as often as wanted; close it in the end.

    results: can be iterated twice or more, like a spool or a list; frames in order. skeleton: of their keypoints.
    join: join tracks of one person, and leave out what shows nobody (`pose.world.tracks`). folder: for nameless
    temporary files. joined: by the id that a track had, the one that it became. dropped: ids of tracks that were left
    out. doubtful: ids of tracks that may show nobody. world: where the floor is. heights: of everybody, by id, m, with
    its sigma. sizes: of everybody, by id. filled: number of filled frames of people. left_out: number of their frames
    that show nobody. inconsistent: by id, s for which each limb contradicts the person's bones
    (`pose.world.consistency`). footing: of everybody, how feet move before a compensated camera (`pose.world.footing`).
    """

    def __init__(
        self,
        results: Iterable[FrameResult],
        skeleton: Skeleton,
        camera: Camera,
        steps: Steps | None = None,
        rules: Rules = RULES,
        join: bool = True,
        folder: Path | None = None,
    ) -> None:
        self._results = results
        self._path = steps.path if steps else None
        self.joined: dict[int, int] = {}
        self.dropped: set[int] = set()
        self.doubtful: set[int] = set()
        self._left_out: dict[int, set[float]] = {}  # by track, s
        self.heights: dict[int, tuple[float, float]] = {}
        self.sizes: Mapping[int, Size] = {}
        self.filled = 0
        self.inconsistent: dict[int, dict[str, float]] = {}
        self.footing: list[F64] = []
        self._begins: list[tuple[float, int]] = []  # s and id of everybody
        self._rows = RowFile(_PLACED, folder)
        try:
            with SeenPeople(skeleton, camera, folder) as people:
                people.gather(results)
                if len(people.frames):
                    self._judge(people, rules, join)
                self._place(people, steps or Steps(), rules, folder)
        except BaseException:
            self.close()
            raise

    @property
    def left_out(self) -> int:
        return sum(map(len, self._left_out.values()))

    def _judge(self, people: SeenPeople, rules: Rules, join: bool) -> None:
        scenes = Scenes.of(people.frames, people.cuts)
        if join:
            for number, person in list(people.items()):
                shown = shown_frames(person, scenes, rules.tracks)
                if not shown.all():
                    self._left_out[number] = set(person.times[~shown].tolist())
                    people.leave_out(number, self._left_out[number])
            self.dropped = self._left_out.keys() - people.keys()
            still = people if self._path is None else StaticPeople(people, self._path)
            self.joined = find_joins(still, scenes.begins, rules.joins)
            people.join(self.joined)
        self.doubtful = {number for number, person in people.items() if is_doubtful(person, scenes, rules.tracks)}

    def _place(self, people: SeenPeople, steps: Steps, rules: Rules, folder: Path | None) -> None:
        with Works(folder) as works:
            for number, person in people.items():
                works.add(number, prepare(number, person, people.frames, steps, rules))
            ground = find_world(works, steps.up, rules)
            self.world, self.sizes = ground.world, ground.sizes
            for number, work in works.items():
                one = put_on_floor(number, work, ground, steps, rules)
                boxes = people.boxes(number, one.times)
                self._rows.append(number, rows_of(one, len(one.times), _PLACED, box=boxes))
                self._begins.append((float(one.times[0]), number))
                self.heights[number] = one.height, one.height_sigma
                self.filled += int(one.filled.sum())
                self.footing.append(one.footing)
                if one.inconsistent.any():
                    self.inconsistent[number] = _durations(one.inconsistent, one.times, people.frames)

    def close(self) -> None:
        """Let the temporary file go."""
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
                here[number] = _Cursor(self._rows.portions(number, _AT_ONCE))
            yield self._placed(self._renamed(result), here)

    def _renamed(self, result: FrameResult) -> FrameResult:
        """With the ids of joined tracks, and without what was left out."""
        ids = result.people.ids.tolist()
        if not {*ids} & (self._left_out.keys() | self.joined.keys()):
            return result
        rows = [row for row, number in enumerate(ids) if result.time not in self._left_out.get(number, ())]
        people, poses = result.people, result.poses
        hands = None if people.hands is None else people.hands[rows]
        faces = None if people.faces is None else people.faces[rows]
        named = np.array([self.joined.get(ids[row], ids[row]) for row in rows], np.int64)
        parts = {name: getattr(people, name)[rows] for name in ("boxes", "box_scores", "keypoints", "scores")}
        kept = Poses3D(
            poses.joints[rows], poses.root[rows], poses.sigma[rows], poses.exchanged[rows], poses.ahead[rows]
        )
        return FrameResult(replace(people, ids=named, hands=hands, faces=faces, **parts), kept)

    def _placed(self, result: FrameResult, here: "dict[int, _Cursor]") -> FrameResult:
        """here: everybody who has come; goes on."""
        place = {number: i for i, number in enumerate(result.people.ids.tolist())}
        found: dict[int, Rows] = {}
        for number, cursor in list(here.items()):
            row = cursor.take(result.time)
            if row is not None and (number in place or row["filled"][0]):
                found[number] = row
            if cursor.ended:
                del here[number]
        order = sorted(found, key=lambda number: place.get(number, len(place)))
        rows = np.concatenate([found[number] for number in order]) if order else np.zeros(0, _PLACED)
        missing = [number for number in order if number not in place]
        people = result.people
        if missing:
            people = people.with_unseen(missing, rows["box"][-len(missing) :])
        exchanged = np.concatenate([result.poses.exchanged, np.zeros((len(missing), 2), bool)])
        part = {name: np.ascontiguousarray(rows[name]) for name in _PLACED.names or ()}
        poses = Poses3D(part["joints"], part["root"], part["sigma"], exchanged)
        doubtful = np.array([number in self.doubtful for number in order], bool)
        placed = Placed(
            part["placed"],
            part["root_sigma"],
            part["contacts"],
            part["filled"],
            part["moved"],
            doubtful,
            part["partial"],
            part["inconsistent"],
        )
        return FrameResult(people, poses, placed, None if self._path is None else self._path.view(result.time))


def _durations(flags: Flags, times: F64, frames: F64) -> dict[str, float]:
    """s for which each limb is flagged (T, 4) at times (T,) s, of a video with frames (F,) s."""
    ends = np.append(frames[1:], 2 * frames[-1] - frames[-2] if len(frames) > 1 else frames[-1])
    lasts = (ends - frames)[np.searchsorted(frames, times)]
    seconds = (flags * lasts[:, None]).sum(axis=0).tolist()
    return {limb: round(value, 3) for limb, value in zip(LIMBS, seconds, strict=True) if value}


class _Cursor:
    """The rows of one person, one after another. ended: there are no more."""

    def __init__(self, portions: Iterator[Rows]) -> None:
        self._portions = portions
        self._rows = next(portions)
        self._at = 0
        self.ended = False

    def take(self, time: float) -> Rows | None:
        """The next row (1,), and go on, if it is that of `time` s or before."""
        if self._rows["times"][self._at] > time:
            return None
        row = self._rows[self._at : self._at + 1]
        self._at += 1
        if self._at == len(self._rows):
            rest = next(self._portions, None)
            self.ended, self._at = rest is None, 0
            self._rows = self._rows if rest is None else rest
        return row
