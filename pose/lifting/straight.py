"""Lifting of 2D keypoints from cameras whose lens distorts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pose.lifting.fit.directions import BoneDirections, give_directions
from pose.lifting.sides import GivenSides, give_sides
from pose.structures.camera import Camera
from pose.structures.stages import LifterStage, Refining
from pose.structures.types import FrameResult, People


class StraightLifter:
    """Lifter stage that lifts keypoints without the lens distortion, and returns them with it (`Refining`)."""

    def __init__(self, stage: LifterStage, camera: Camera) -> None:
        """Wrap a stage that lifts the people of a camera without distortion."""
        self._stage, self._camera = stage, camera
        self._seen: dict[int, People] = {}  # people of the frames that the stage still returns, by frame
        self._refined_frames: dict[int, People] = {}

    def take_sides(self, sides: Sequence[GivenSides]) -> None:
        """Set the sides that a user gives, before the first frame; UsageError if the stage cannot follow them."""
        give_sides(self._stage, sides)

    def take_directions(self, directions: Mapping[int, BoneDirections]) -> None:
        """Set sensors' directions by track id, before the first frame; UsageError without a fit."""
        give_directions(self._stage, directions)

    def push(self, people: People) -> list[FrameResult]:
        """Process the people of the next frame; return the results that are now final, oldest first."""
        self._seen[people.index] = people
        return self._returned(self._stage.push(replace(people, keypoints=self._camera.undistort(people.keypoints))))

    def flush(self) -> list[FrameResult]:
        """End the stream, and return the results of all remaining frames, oldest first."""
        return self._returned(self._stage.flush())

    @property
    def refines(self) -> bool:
        """Whether `take_refined` returns frames."""
        return isinstance(self._stage, Refining) and self._stage.refines

    def take_refined(self) -> list[FrameResult]:
        """Return the frames refined since the last call, oldest first. After `flush`, return all remaining frames."""
        refined = self._stage.take_refined() if isinstance(self._stage, Refining) else []
        return [replace(result, people=self._refined_frames.pop(result.index)) for result in refined]

    def _returned(self, results: list[FrameResult]) -> list[FrameResult]:
        returned = []
        for result in results:
            people = self._seen.pop(result.index)
            returned.append(replace(result, people=people))
            if self.refines:
                self._refined_frames[result.index] = people
        return returned
