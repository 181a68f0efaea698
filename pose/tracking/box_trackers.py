"""Box trackers that can be chosen by name.

Each tracker is imported only when it is built, to keep option parsing fast."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pose.tracking.association import BoxTracker, Similarity


@dataclass(frozen=True, slots=True)
class BoxTrackerChoice:
    """Box tracker that can be chosen by name, an entry of `BOX_TRACKERS`.

    Attributes:
        build: Function that returns the tracker. Its arguments are the time in s after which an unobserved track is
            deleted, and the function that compares boxes.
        needs_image: Whether the tracker needs the image of every frame.
    """

    build: "Callable[[float, Similarity], BoxTracker]"
    needs_image: bool = False


def _bytetrack(memory: float, similarity: "Similarity") -> "BoxTracker":
    from pose.tracking.association import ByteTrack

    return ByteTrack(memory, similarity)


def _ocsort(memory: float, similarity: "Similarity") -> "BoxTracker":
    from pose.tracking.association import OcSort

    return OcSort(memory, similarity)


def _botsort(memory: float, similarity: "Similarity") -> "BoxTracker":
    from pose.tracking.association import BotSort

    return BotSort(memory, similarity)


BOX_TRACKERS: dict[str, BoxTrackerChoice] = {
    "bytetrack": BoxTrackerChoice(_bytetrack),
    "ocsort": BoxTrackerChoice(_ocsort),
    "botsort": BoxTrackerChoice(_botsort, needs_image=True),  # estimates the camera motion
}
