"""The protocols that the pipeline joins. A stage knows its input and its output, and no other stage."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pose.skeletons import Skeleton
from pose.types import U8, Boxes, FrameResult, Keypoints2D, People, Regions


@runtime_checkable
class Detector(Protocol):
    """Frame -> people."""

    name: str

    def detect(self, images: Sequence[U8]) -> list[Boxes]:
        """Person boxes in each (H, W, 3) uint8 RGB image, in that image's pixels, best first."""
        ...


@runtime_checkable
class Estimator(Protocol):
    """Crop -> keypoints."""

    name: str
    skeleton: Skeleton

    def regions(self, boxes: Boxes) -> Regions:
        """The crops to take for what a detector found."""
        ...

    def estimate(self, images: Sequence[U8], regions: Sequence[Regions]) -> list[Keypoints2D]:
        """Keypoints in every region of every image; all crops go through the network in as few batches as it allows."""
        ...


@runtime_checkable
class OnePass(Protocol):
    """Frame -> people and their keypoints, in one pass over the picture."""

    name: str
    skeleton: Skeleton

    def find(self, images: Sequence[U8]) -> list[tuple[Boxes, Keypoints2D]]:
        """The people in each (H, W, 3) uint8 RGB image, best first: their boxes and, row by row, their keypoints."""
        ...


class PeopleStage(Protocol):
    """Frame -> tracked 2D people: detector, estimator and identities together."""

    skeleton: Skeleton

    def step(self, image: U8, index: int, time: float) -> People:
        """The people of the next frame. Frames come in order; ids are stable and never reused."""
        ...


class LifterStage(Protocol):
    """Tracked 2D people -> 3D, in order, with a bounded delay."""

    def push(self, people: People) -> list[FrameResult]:
        """Take the next frame; return the frames that are final now, oldest first."""
        ...

    def flush(self) -> list[FrameResult]:
        """The source has ended: return all frames not yet returned."""
        ...


@runtime_checkable
class Refining(Protocol):
    """A `LifterStage` that may give each frame a second time, as it is known once others have followed."""

    @property
    def refines(self) -> bool:
        """Whether it does."""
        ...

    def take_refined(self) -> list[FrameResult]:
        """The frames that are final since the last call, oldest first; after `flush`, all that were pushed."""
        ...
