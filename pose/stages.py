"""Protocols of the pipeline stages. A stage depends on its input and output types, and on no other stage."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pose.skeletons import Skeleton
from pose.types import U8, Boxes, FrameResult, Keypoints2D, People, Regions


@runtime_checkable
class Detector(Protocol):
    """Detects people in images."""

    name: str

    def detect(self, images: Sequence[U8]) -> list[Boxes]:
        """Return person boxes of each (H, W, 3) uint8 RGB image, in its pixels, sorted by descending score."""
        ...


@runtime_checkable
class Estimator(Protocol):
    """Estimates 2D keypoints in crops."""

    name: str
    skeleton: Skeleton

    def regions(self, boxes: Boxes) -> Regions:
        """Return the crops for detections."""
        ...

    def estimate(self, images: Sequence[U8], regions: Sequence[Regions]) -> list[Keypoints2D]:
        """Estimate keypoints in every region of every image, in as few batches as the network allows."""
        ...


@runtime_checkable
class OnePass(Protocol):
    """Detects people and their keypoints in one pass over the image."""

    name: str
    skeleton: Skeleton

    def find(self, images: Sequence[U8]) -> list[tuple[Boxes, Keypoints2D]]:
        """Return boxes and keypoints, row by row, of each (H, W, 3) uint8 RGB image, sorted by descending score."""
        ...


class PeopleStage(Protocol):
    """Detects and tracks people: detector, estimator and tracker together."""

    skeleton: Skeleton

    def step(self, image: U8, index: int, time: float) -> People:
        """Process the next frame. Frames must be in order; ids are stable and never reused."""
        ...


class LifterStage(Protocol):
    """Lifts tracked 2D people to 3D, in order, with bounded delay."""

    def push(self, people: People) -> list[FrameResult]:
        """Process the next frame; return the frames that are now final, oldest first."""
        ...

    def flush(self) -> list[FrameResult]:
        """End the stream; return all remaining frames."""
        ...


@runtime_checkable
class Refining(Protocol):
    """A `LifterStage` that may return each frame a second time, refined with later frames."""

    @property
    def refines(self) -> bool:
        """Whether `take_refined` returns frames."""
        ...

    def take_refined(self) -> list[FrameResult]:
        """Return the frames refined since the last call, oldest first; after `flush`, all remaining ones."""
        ...
