"""Constant bone lengths for a person during a video.

The frames of the first seconds are held back until the bone lengths are estimated from them. No other frames are
stored.
"""

from pose.lifting.pending import PersonFrame, keypoint_sequence, lifted_sequence
from pose.structures.camera import Camera
from pose.structures.refine import BodyDimensions, estimate_body, with_body_lengths
from pose.structures.skeletons import Skeleton

FIT_SECONDS = 10.0  # duration at the start of a track from which bone lengths are estimated


class PersonBody:
    """Step that makes the bone lengths of one person's lifted frames constant, as `pose.structures.refine.refine`
    does."""

    def __init__(self, skeleton: Skeleton, camera: Camera) -> None:
        self._skeleton, self._camera = skeleton, camera
        self._body: BodyDimensions | None = None
        self._first: list[PersonFrame] = []  # frames from which bone lengths will be estimated

    def push(self, frames: list[PersonFrame]) -> list[PersonFrame]:
        """Add lifted frames; returns those that are final now, oldest first."""
        if self._body is not None:
            return self._refined(frames, self._body)
        self._first += frames
        complete = bool(self._first) and self._first[-1].time >= self._first[0].time + FIT_SECONDS
        return self.end() if complete else []

    def end(self) -> list[PersonFrame]:
        """Return the remaining frames. If bone lengths are not known yet, they are estimated from these frames."""
        frames, self._first = self._first, []
        if not frames:
            return []
        self._body = self._fitted([frame for frame in frames if frame.time <= frames[0].time + FIT_SECONDS])
        return self._refined(frames, self._body)

    def _fitted(self, frames: list[PersonFrame]) -> BodyDimensions:
        return estimate_body(lifted_sequence(frames), keypoint_sequence(frames, self._camera, self._skeleton))

    def _refined(self, frames: list[PersonFrame], body: BodyDimensions) -> list[PersonFrame]:
        if not frames:
            return []
        for frame, joints in zip(frames, with_body_lengths(lifted_sequence(frames), body).joints, strict=True):
            assert frame.lifted is not None
            frame.lifted[: joints.size] = joints.ravel()
        return frames
