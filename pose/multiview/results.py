"""Conversion of motions to frame results for files, exports and viewers, like the results of one camera."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from pose.multiview.hands import HandStream
from pose.multiview.motions import FusedTimes, contacts_of
from pose.multiview.rig import Rig
from pose.multiview.stored import FusedMotion
from pose.results import RunInfo
from pose.structures.face_points import Faces
from pose.structures.hand_points import ELBOWS, WRISTS, Hands, swapped_with_arms
from pose.structures.types import F32, F64, FrameResult, People, Placed, Poses3D
from pose.world.corrections import Corrections
from pose.world.frame import World


class MultiviewResults:
    """Frame results of several cameras, which can be iterated repeatedly.

    Boxes, keypoints, hand pixels and faces, and whether they are interpolated, come from the first camera's frame
    nearest in time. Where this camera does
    not see the person, boxes are projections of the 3D joints, and the others are 0. 3D poses are in the frame of the
    first camera; `placed` is in the world. Ids are 1, 2, ... in the order of the motions.
    """

    def __init__(
        self,
        rig: Rig,
        motions: Sequence[FusedMotion],
        line: FusedTimes,
        world: World,
        own: Sequence[Iterable[FrameResult]],
        info: RunInfo,
        doubtful: Collection[int] = (),
        corrections: Corrections | None = None,
    ) -> None:
        """Combine motions with the results of each camera; without hands only those of the first are read.

        `doubtful` has the ids of people who may be false detections, `corrections` contacts that a user gives.
        """
        self._rig, self._motions, self._line, self._world = rig, motions, line, world
        self._doubtful = list(doubtful)
        self._own, self._info = own, info
        self._contacts = [contacts_of(motion, world, line) for motion in motions]
        for person, (motion, contacts) in enumerate(zip(motions, self._contacts, strict=True), 1):
            if corrections is not None:
                corrections.with_contacts(person, line.times[motion.frames], contacts > 0, contacts)
        self._person = {
            number: person for person, tracks in enumerate(rig.tracks) for camera, number in tracks if camera == 0
        }

    def __len__(self) -> int:
        return len(self._line.times)

    def __iter__(self) -> Iterator[FrameResult]:
        own = self._rig.cameras[0].own_time(self._line.times)
        nearest = _Nearest(self._own[0], 0.6 / self._line.fps)
        hands = HandStream(self._rig.cameras, self._rig.tracks, self._own) if self._info.has_hands else None
        at = [0] * len(self._motions)
        for frame, time in enumerate(self._line.times.tolist()):
            here = []
            for person, motion in enumerate(self._motions):
                while at[person] < len(motion.frames) and motion.frames[at[person]] < frame:
                    at[person] += 1
                if at[person] < len(motion.frames) and motion.frames[at[person]] == frame:
                    here.append(person)
            result = self._result(frame, time, here, at, nearest.at(float(own[frame])))
            yield result if hands is None else _with_hands(result, here, hands)

    def _result(self, frame: int, time: float, here: list[int], at: list[int], seen: FrameResult | None) -> FrameResult:
        n, j = len(here), len(self._info.skeleton)
        boxes, box_scores = np.zeros((n, 4), np.float32), np.zeros(n, np.float32)
        keypoints, (scores, keypoint_sigma) = np.zeros((n, j, 2), np.float32), np.zeros((2, n, j), np.float32)
        swapped, interpolated = np.zeros((n, 2), bool), np.zeros(n, bool)
        hands = Hands.unknown(n) if self._info.has_hands else None
        faces = Faces.unknown(n) if self._info.has_faces else None
        for row, person in enumerate(here):
            boxes[row] = self._box(self._motions[person].joints[at[person]])
        if seen is not None:
            rows = {person: row for row, person in enumerate(here)}
            for row, number in enumerate(seen.people.ids.tolist()):
                place = rows.get(self._person.get(number, -1))
                if place is not None:
                    boxes[place], box_scores[place] = seen.people.boxes[row], seen.people.box_scores[row]
                    keypoints[place], scores[place] = seen.people.keypoints[row], seen.people.scores[row]
                    keypoint_sigma[place] = seen.people.keypoint_sigma[row]
                    interpolated[place] = seen.people.interpolated[row]
                    swapped[place] = seen.poses.swapped[row]
                    if hands is not None and seen.people.hands is not None:
                        hands.points[place] = seen.people.hands.points[row]
                        hands.scores[place] = seen.people.hands.scores[row]
                    if faces is not None and seen.people.faces is not None:
                        faces.points[place] = seen.people.faces.points[row]
                        faces.scores[place] = seen.people.faces.scores[row]
        joints = _stacked([self._motions[p].joints[at[p]] for p in here], (17, 3))
        sigma = _stacked([self._motions[p].sigma[at[p]] for p in here], (17,))
        seen_by = np.array([self._motions[p].seen_by[at[p]] for p in here], np.uint8).reshape(n, 17)
        ids = np.array(here, np.int64) + 1
        people = People(
            frame, time, ids, boxes, box_scores, keypoints, scores, keypoint_sigma, interpolated, hands=hands,
            faces=faces,
        )  # fmt: skip
        poses = Poses3D(joints - joints[:, :1], joints[:, 0], sigma, swapped, seen_by=seen_by)
        placed = Placed(
            self._world.place(joints).astype(np.float32),
            sigma[:, 0],
            _stacked([self._contacts[p][at[p]] for p in here], (2,)),
            np.zeros(n, bool),
            np.full(n, np.nan, np.float32),
            np.isin(ids, self._doubtful),
        )
        return FrameResult(people, poses, placed)

    def _box(self, joints: F32) -> F64:
        """Return the box (4,) xyxy px around the joints (17, 3) m in the first camera's image."""
        pixels = self._rig.cameras[0].project(joints.astype(np.float64))
        return np.concatenate([pixels.min(axis=0), pixels.max(axis=0)])


def _with_hands(result: FrameResult, here: Sequence[int], stream: HandStream) -> FrameResult:
    """Return the result with hands in 3D, fused from all cameras."""
    hands, joints, swapped = result.people.hands, result.poses.joints, result.poses.swapped
    assert hands is not None
    placed: F64 = (joints + result.poses.root[:, None]).astype(np.float64)
    forearms = np.linalg.norm(placed[:, WRISTS] - placed[:, ELBOWS], axis=-1).mean(axis=1)
    shapes, sigma = stream.at(result.time, here, placed[:, WRISTS], forearms)
    measured = Hands(hands.points, hands.scores, swapped_with_arms(shapes, swapped), swapped_with_arms(sigma, swapped))
    return replace(result, people=replace(result.people, hands=measured))


class _Nearest:
    """Search for the results of one camera that are nearest to increasing times."""

    def __init__(self, results: Iterable[FrameResult], max_gap_s: float) -> None:
        """Start at the first result; a result may be `max_gap_s` from the requested time."""
        self._results, self._max_gap_s = iter(results), max_gap_s
        self._before: FrameResult | None = None
        self._after: FrameResult | None = next(self._results, None)

    def at(self, time: float) -> FrameResult | None:
        """Return the result nearest to `time` (s); None if there is none within `max_gap_s`."""
        while self._after is not None and self._after.time <= time:
            self._before, self._after = self._after, next(self._results, None)
        near = [
            one for one in (self._before, self._after) if one is not None and abs(one.time - time) <= self._max_gap_s
        ]
        return min(near, key=lambda one: abs(one.time - time), default=None)


def _stacked(parts: Sequence[np.ndarray], shape: tuple[int, ...]) -> F32:
    return np.array(parts, np.float32).reshape(len(parts), *shape)
