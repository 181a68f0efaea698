"""A whole run put into its world: results in, the same results cleaned and placed out.

Everything about a person is in memory meanwhile: about 5 MB for a minute of one person.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pose.camera import Camera, normalize_pixels
from pose.skeletons import Skeleton, to_h36m17
from pose.types import F32, FrameResult, Placed, Poses3D
from pose.world.clean import Cleaned, Steps, clean
from pose.world.join import find_joins
from pose.world.person import Person
from pose.world.rules import RULES, Rules

F64 = NDArray[np.float64]
_UNSURE = 1e4  # mm, of what is not a number


class PlacedRun:
    """The results of a run in their world. Iterate over it as often as wanted.

    results: can be iterated twice or more, like a spool or a list; frames in order. skeleton: of their keypoints.
    join: tracks of one person become one, and tracks of a moment go. joined: by the id that a track had, the one that
    it became. dropped: ids that are gone. world: where the floor is. people: by id, what the steps made of them.
    heights: by id, m, with its sigma.
    """

    def __init__(
        self,
        results: Iterable[FrameResult],
        skeleton: Skeleton,
        camera: Camera,
        steps: Steps | None = None,
        rules: Rules = RULES,
        join: bool = True,
    ) -> None:
        self._results = results
        persons, self._boxes, frames, cuts = _people(results, skeleton, camera)
        self.joined: dict[int, int] = {}
        self.dropped: set[int] = set()
        if join and len(frames):
            self.joined, self.dropped = find_joins(persons, [float(frames[0]), *cuts], float(frames[-1]), rules.joins)
            persons, self._boxes = _joined(persons, self._boxes, self.joined, self.dropped)
        self.world, self.people = clean(persons, frames, steps, rules)

    @property
    def heights(self) -> dict[int, tuple[float, float]]:
        return {number: (person.height, person.height_sigma) for number, person in self.people.items()}

    @property
    def filled(self) -> int:
        """How many frames of people were filled in."""
        return sum(int(person.filled.sum()) for person in self.people.values())

    def __iter__(self) -> Iterator[FrameResult]:
        at = dict.fromkeys(self.people, 0)
        for result in self._results:
            yield self._placed(self._renamed(result), at)

    def _renamed(self, result: FrameResult) -> FrameResult:
        """With the ids of joined tracks, and without those that are gone."""
        ids = result.people.ids.tolist()
        if not (self.dropped or self.joined) or not {*ids} & (self.dropped | self.joined.keys()):
            return result
        rows = [row for row, number in enumerate(ids) if number not in self.dropped]
        people, poses = result.people, result.poses
        named = np.array([self.joined.get(ids[row], ids[row]) for row in rows], np.int64)
        parts = {name: getattr(people, name)[rows] for name in ("boxes", "box_scores", "keypoints", "scores")}
        kept = Poses3D(
            poses.joints[rows], poses.root[rows], poses.sigma[rows], poses.exchanged[rows], poses.ahead[rows]
        )
        return FrameResult(replace(people, ids=named, **parts), kept)

    def _placed(self, result: FrameResult, at: dict[int, int]) -> FrameResult:
        """at: by id, the next row of the person; goes on."""
        rows: list[tuple[int, Cleaned, int]] = []
        ids = set(result.people.ids.tolist())
        for number, person in self.people.items():
            row = at[number]
            if row < len(person.times) and person.times[row] <= result.time:
                at[number] += 1
                if number in ids or person.filled[row]:
                    rows.append((number, person, row))
        place = {number: i for i, number in enumerate(result.people.ids.tolist())}
        rows.sort(key=lambda one: place.get(one[0], len(place)))
        missing = [number for number, *_ in rows if number not in place]
        people = result.people
        if missing:
            people = people.with_unseen(missing, np.stack([self._box(number, result.time) for number in missing]))
        exchanged = np.concatenate([result.poses.exchanged, np.zeros((len(missing), 2), bool)])
        sigma = np.stack([p.sigma[row] for _, p, row in rows]) if rows else np.zeros((0, 17))
        joints, root, placed, contacts = (
            np.stack([getattr(p, name)[row] for _, p, row in rows]).astype(np.float32)
            if rows
            else np.zeros((0, *shape), np.float32)
            for name, shape in (("joints", (17, 3)), ("root", (3,)), ("placed", (17, 3)), ("contacts", (2,)))
        )
        single = {
            name: np.array([getattr(p, name)[row] for _, p, row in rows], kind)
            for name, kind in (("root_sigma", np.float32), ("filled", bool), ("moved", np.float32))
        }
        return FrameResult(
            people,
            Poses3D(joints, root, sigma.astype(np.float32), exchanged),
            Placed(placed, contacts=contacts, **single),
        )

    def _box(self, number: int, time: float) -> F32:
        """Where the box of a person who is missing would be: between those around."""
        times, boxes = self._boxes[number]
        return np.array([np.interp(time, times, boxes[:, side]) for side in range(4)], np.float32)


def _joined(
    persons: dict[int, Person], boxes: dict[int, tuple[F64, F32]], joined: dict[int, int], dropped: set[int]
) -> tuple[dict[int, Person], dict[int, tuple[F64, F32]]]:
    """Everybody and their boxes, with tracks of one person in one."""
    parts: dict[int, list[int]] = {}
    for number in persons:
        if number not in dropped:
            parts.setdefault(joined.get(number, number), []).append(number)
    people, places = {}, {}
    for number, tracks in parts.items():
        tracks.sort(key=lambda track: persons[track].times[0])
        people[number] = Person(
            *(np.concatenate([getattr(persons[track], name) for track in tracks]) for name in Person.__slots__)
        )
        places[number] = (
            np.concatenate([boxes[track][0] for track in tracks]),
            np.concatenate([boxes[track][1] for track in tracks]),
        )
    return people, places


def _people(
    results: Iterable[FrameResult], skeleton: Skeleton, camera: Camera
) -> tuple[dict[int, Person], dict[int, tuple[F64, F32]], F64, list[float]]:
    """Everybody by id, their boxes with times, the times of all frames, and of those that begin another scene."""
    found: dict[int, list[tuple[float, FrameResult, int]]] = {}
    frames, cuts = [], []
    for result in results:
        frames.append(result.time)
        if result.people.cut:
            cuts.append(result.time)
        for row, number in enumerate(result.people.ids.tolist()):
            found.setdefault(number, []).append((result.time, result, row))
    persons, boxes = {}, {}
    for number, rows in found.items():
        times = np.array([time for time, *_ in rows])
        joints, root, sigma = (
            np.array([getattr(result.poses, name)[row] for _, result, row in rows], np.float64)
            for name in ("joints", "root", "sigma")
        )
        keypoints, scores = (
            np.array([getattr(result.people, name)[row] for _, result, row in rows]) for name in ("keypoints", "scores")
        )
        pixels, seen = to_h36m17(keypoints, scores, skeleton)
        finite = np.isfinite(np.concatenate([joints.reshape(len(rows), -1), root, sigma], axis=1)).all(axis=1)
        if not finite.all():  # as if the frame before or after were seen again, and nothing of it
            whole = np.flatnonzero(finite)
            near = whole[np.searchsorted(whole, np.arange(len(rows))).clip(max=len(whole) - 1)] if len(whole) else []
            joints, root, sigma = (part[near] if len(whole) else np.ones_like(part) for part in (joints, root, sigma))
            sigma[~finite] = _UNSURE
        seen = np.where(finite[:, None] & np.isfinite(pixels).all(axis=-1), seen, 0)
        rays = np.where(seen[..., None] > 0, normalize_pixels(pixels, camera.matrix), 0.0)
        persons[number] = Person(joints, root, sigma, times, rays, seen.astype(np.float64))
        boxes[number] = times, np.array([result.people.boxes[row] for _, result, row in rows])
    return persons, boxes, np.array(frames), cuts
