"""One body for a person while a video goes by: bones keep their length from the first frame to the last.

The first seconds wait until they have said how long bones are. Memory is bounded by those seconds, not by the video.
"""

import numpy as np

from pose.camera import Camera
from pose.lifter.pending import PersonFrame
from pose.lifter.predict import split_outputs
from pose.refine import Body, body_of, on_body
from pose.sequences import Sequence2D, Sequence3D
from pose.skeletons import Skeleton

SECONDS = 10.0  # of a person that say what body it is; later frames do not change it


class PersonBody:
    """Puts the lifted frames of one person on one body, as `pose.refine.refine` does."""

    def __init__(self, skeleton: Skeleton, camera: Camera) -> None:
        self._skeleton, self._camera = skeleton, camera
        self._body: Body | None = None
        self._first: list[PersonFrame] = []  # those that will say what body it is

    def push(self, frames: list[PersonFrame]) -> list[PersonFrame]:
        """Take the next frames, lifted; return those that are final now, oldest first."""
        if self._body is not None:
            return self._refined(frames, self._body)
        self._first += frames
        complete = bool(self._first) and self._first[-1].time >= self._first[0].time + SECONDS
        return self.end() if complete else []

    def end(self) -> list[PersonFrame]:
        """The person's first seconds are all there, or all there will be."""
        frames, self._first = self._first, []
        if not frames:
            return []
        self._body = self._fitted([frame for frame in frames if frame.time <= frames[0].time + SECONDS])
        return self._refined(frames, self._body)

    def _fitted(self, frames: list[PersonFrame]) -> Body:
        lifted = _sequence(frames)
        keypoints, scores = (np.stack([getattr(frame, name) for frame in frames]) for name in ("keypoints", "scores"))
        return body_of(lifted, Sequence2D(keypoints, scores, lifted.times, self._camera, self._skeleton.name))

    def _refined(self, frames: list[PersonFrame], body: Body) -> list[PersonFrame]:
        if not frames:
            return []
        for frame, joints in zip(frames, on_body(_sequence(frames), body).joints, strict=True):
            assert frame.lifted is not None
            frame.lifted[: joints.size] = joints.ravel()
        return frames


def _sequence(frames: list[PersonFrame]) -> Sequence3D:
    answers = np.stack([frame.lifted for frame in frames if frame.lifted is not None])
    return Sequence3D(*split_outputs(answers), np.array([frame.time for frame in frames]))
