"""Motions as frame results, like those of one camera's pipeline, for files, exports and viewers."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from pose.multiview.motions import Motion, TimeLine, contacts_of
from pose.multiview.rig import Rig
from pose.skeletons import Skeleton
from pose.types import F32, F64, FrameResult, People, Placed, Poses3D
from pose.world.frame import World


class MultiviewResults:
    """The results of all frames; can be iterated repeatedly.

    Boxes and keypoints are those of the first camera in the frame nearest in time, 0 where it does not see the person.
    3D is in its frame, `placed` in the world. Ids are 1, 2, ... in the order of the motions.
    """

    def __init__(
        self,
        rig: Rig,
        motions: Sequence[Motion],
        line: TimeLine,
        world: World,
        first_camera: Iterable[FrameResult],
        skeleton: Skeleton,
    ) -> None:
        """Combine motions with the results of the first camera.

        Args:
            first_camera: Results of the first camera; must be repeatedly iterable.
        """
        self._rig, self._motions, self._line, self._world = rig, motions, line, world
        self._first_camera, self._skeleton = first_camera, skeleton
        self._contacts = [contacts_of(motion, world, line) for motion in motions]
        self._person = {
            number: person for person, tracks in enumerate(rig.tracks) for camera, number in tracks if camera == 0
        }

    def __len__(self) -> int:
        return len(self._line.times)

    def __iter__(self) -> Iterator[FrameResult]:
        own = self._rig.cameras[0].own_time(self._line.times)
        nearest = _Nearest(self._first_camera, 0.6 / self._line.fps)
        at = [0] * len(self._motions)
        for frame, time in enumerate(self._line.times.tolist()):
            here = []
            for person, motion in enumerate(self._motions):
                while at[person] < len(motion.frames) and motion.frames[at[person]] < frame:
                    at[person] += 1
                if at[person] < len(motion.frames) and motion.frames[at[person]] == frame:
                    here.append(person)
            yield self._result(frame, time, here, at, nearest.at(float(own[frame])))

    def _result(self, frame: int, time: float, here: list[int], at: list[int], seen: FrameResult | None) -> FrameResult:
        n, j = len(here), len(self._skeleton)
        boxes, box_scores = np.zeros((n, 4), np.float32), np.zeros(n, np.float32)
        keypoints, scores, swapped = (
            np.zeros((n, j, 2), np.float32),
            np.zeros((n, j), np.float32),
            np.zeros((n, 2), bool),
        )
        for row, person in enumerate(here):
            boxes[row] = self._box(self._motions[person].joints[at[person]])
        if seen is not None:
            rows = {person: row for row, person in enumerate(here)}
            for row, number in enumerate(seen.people.ids.tolist()):
                place = rows.get(self._person.get(number, -1))
                if place is not None:
                    boxes[place], box_scores[place] = seen.people.boxes[row], seen.people.box_scores[row]
                    keypoints[place], scores[place] = seen.people.keypoints[row], seen.people.scores[row]
                    swapped[place] = seen.poses.swapped[row]
        joints = _stacked([self._motions[p].joints[at[p]] for p in here], (17, 3))
        sigma = _stacked([self._motions[p].sigma[at[p]] for p in here], (17,))
        seen_by = np.array([self._motions[p].seen_by[at[p]] for p in here], np.uint8).reshape(n, 17)
        people = People(frame, time, np.array(here, np.int64) + 1, boxes, box_scores, keypoints, scores)
        poses = Poses3D(joints - joints[:, :1], joints[:, 0], sigma, swapped, seen_by=seen_by)
        placed = Placed(
            self._world.place(joints).astype(np.float32),
            sigma[:, 0],
            _stacked([self._contacts[p][at[p]] for p in here], (2,)),
            np.zeros(n, bool),
            np.full(n, np.nan, np.float32),
        )
        return FrameResult(people, poses, placed)

    def _box(self, joints: F32) -> F64:
        """Box (4,) around the joints (17, 3) m in the first camera's image."""
        pixels = self._rig.cameras[0].project(joints.astype(np.float64))
        return np.concatenate([pixels.min(axis=0), pixels.max(axis=0)])


class _Nearest:
    """The results nearest to increasing times."""

    def __init__(self, results: Iterable[FrameResult], reach: float) -> None:
        """Start at the first result.

        Args:
            results: Results in the order of time.
            reach: Maximum distance in s.
        """
        self._results, self._reach = iter(results), reach
        self._before: FrameResult | None = None
        self._after: FrameResult | None = next(self._results, None)

    def at(self, time: float) -> FrameResult | None:
        """The nearest result, or None."""
        while self._after is not None and self._after.time <= time:
            self._before, self._after = self._after, next(self._results, None)
        near = [one for one in (self._before, self._after) if one is not None and abs(one.time - time) <= self._reach]
        return min(near, key=lambda one: abs(one.time - time), default=None)


def _stacked(parts: Sequence[np.ndarray], shape: tuple[int, ...]) -> F32:
    return np.array(parts, np.float32).reshape(len(parts), *shape)
