"""One body for a person while a video goes by: bones keep their length from the first frame to the last.

The first seconds wait until they have said how long bones are. Memory is bounded by those seconds, not by the video.
"""

from pose.camera import Camera
from pose.lifter.pending import PersonFrame, lifted_sequence, seen_sequence
from pose.refine import Body, body_of, on_body
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
        return body_of(lifted_sequence(frames), seen_sequence(frames, self._camera, self._skeleton))

    def _refined(self, frames: list[PersonFrame], body: Body) -> list[PersonFrame]:
        if not frames:
            return []
        for frame, joints in zip(frames, on_body(lifted_sequence(frames), body).joints, strict=True):
            assert frame.lifted is not None
            frame.lifted[: joints.size] = joints.ravel()
        return frames
