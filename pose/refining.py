"""One body for each person while a video goes by: a stage around an offline lifter.

Bones keep their length from a person's first frame to the last, so the first seconds wait until they have said how long
bones are. Memory is bounded by those seconds, not by the video.
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from pose.camera import Camera
from pose.refine import Body, body_of, on_body
from pose.sequences import Sequence2D, Sequence3D
from pose.skeletons import Skeleton
from pose.stages import LifterStage
from pose.types import FrameResult, People, Poses3D

SECONDS = 10.0  # of a person that say what body it is; later frames do not change it


class RefinedLifter:
    """A lifter (`pose.stages.LifterStage`) whose people have one body each, as `pose.refine.refine` gives it.

    skeleton: of the keypoints. camera: that sees them.
    """

    def __init__(self, lifter: LifterStage, skeleton: Skeleton, camera: Camera) -> None:
        self._lifter, self._skeleton, self._camera = lifter, skeleton, camera
        self._people: dict[int, _Person] = {}
        self._waiting: deque[FrameResult] = deque()

    def push(self, people: People) -> list[FrameResult]:
        """Take the next frame; return the frames that are final now, oldest first."""
        return self._take(self._lifter.push(people), ended=False)

    def flush(self) -> list[FrameResult]:
        """The source has ended: return all frames not yet returned."""
        return self._take(self._lifter.flush(), ended=True)

    def _take(self, results: list[FrameResult], ended: bool) -> list[FrameResult]:
        for result in results:
            self._waiting.append(result)
            for row, number in enumerate(result.people.ids.tolist()):
                person = self._people.setdefault(number, _Person(result.people.time))
                if person.body is None:
                    person.frames.append((result, row))
        newest = self._waiting[-1].people.time if self._waiting else 0.0
        final = []
        while self._waiting and (ended or self._waiting[0].people.time <= newest - SECONDS):
            final.append(self._refined(self._waiting.popleft()))
        return final

    def _refined(self, result: FrameResult) -> FrameResult:
        joints = result.poses.joints.copy()
        for row, number in enumerate(result.people.ids.tolist()):
            person = self._people[number]
            if person.body is None:  # all of the person's first seconds are there now, or all there will be
                person.body = self._fitted(person)
            joints[row] = on_body(_sequence([(result, row)]), person.body).joints[0]
        return FrameResult(result.people, Poses3D(joints, result.poses.root, result.poses.sigma))

    def _fitted(self, person: "_Person") -> Body:
        frames = [(result, row) for result, row in person.frames if result.people.time <= person.since + SECONDS]
        person.frames = []
        lifted = _sequence(frames)
        keypoints, scores = (
            np.stack([getattr(result.people, name)[row] for result, row in frames]) for name in ("keypoints", "scores")
        )
        return body_of(lifted, Sequence2D(keypoints, scores, lifted.times, self._camera, self._skeleton.name))


@dataclass(slots=True)
class _Person:
    """since: s, of the first frame. frames: those that will say what body it is, with the person's row in each."""

    since: float
    body: Body | None = None
    frames: list[tuple[FrameResult, int]] = field(default_factory=list)


def _sequence(frames: list[tuple[FrameResult, int]]) -> Sequence3D:
    joints, root, sigma = (
        np.stack([getattr(result.poses, name)[row] for result, row in frames]) for name in ("joints", "root", "sigma")
    )
    return Sequence3D(joints, root, sigma, np.array([result.people.time for result, _ in frames]))
