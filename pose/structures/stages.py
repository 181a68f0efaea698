"""Protocols of the pipeline stages. A stage depends only on its input and output types, not on other stages."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pose.structures.skeletons import Skeleton
from pose.structures.types import U8, Boxes, FrameResult, Keypoints2D, People, Regions


@runtime_checkable
class Detector(Protocol):
    """Detector of people in images."""

    name: str

    def detect(self, images: Sequence[U8]) -> list[Boxes]:
        """Return the boxes of people in each (H, W, 3) uint8 RGB image, in px, sorted by descending score."""
        ...


@runtime_checkable
class Estimator(Protocol):
    """Estimator of 2D keypoints in crops of images."""

    name: str
    skeleton: Skeleton

    def regions(self, boxes: Boxes) -> Regions:
        """Return the region of the image to crop for each box, in the same order."""
        ...

    def estimate(self, images: Sequence[U8], regions: Sequence[Regions]) -> list[Keypoints2D]:
        """Estimate keypoints in px, a row for each region of each (H, W, 3) uint8 RGB image, in few batches."""
        ...


@runtime_checkable
class OnePass(Protocol):
    """Network that detects people and their keypoints in one pass over the image."""

    name: str
    skeleton: Skeleton

    def find(self, images: Sequence[U8]) -> list[tuple[Boxes, Keypoints2D]]:
        """Return boxes and keypoints, row by row, of people in each (H, W, 3) uint8 RGB image, best first."""
        ...


class PeopleStage(Protocol):
    """Stage that detects and tracks people. It combines detector, estimator and tracker."""

    skeleton: Skeleton

    def step(self, image: U8, index: int, time: float) -> People:
        """Return the people in the next (H, W, 3) uint8 RGB frame at `time` s; ids are never reused."""
        ...


class LifterStage(Protocol):
    """Stage that lifts tracked people from 2D to 3D, in the order of the frames and with bounded delay."""

    def push(self, people: People) -> list[FrameResult]:
        """Process the people of the next frame; return the results that are now final, oldest first."""
        ...

    def flush(self) -> list[FrameResult]:
        """End the stream, and return the results of all remaining frames, oldest first."""
        ...


@runtime_checkable
class Refining(Protocol):
    """Additional methods of a `LifterStage` that can return each frame a second time, refined with later frames."""

    @property
    def refines(self) -> bool:
        """Whether `take_refined` returns frames."""
        ...

    def take_refined(self) -> list[FrameResult]:
        """Return the frames refined since the last call, oldest first. After `flush`, return all remaining frames."""
        ...
