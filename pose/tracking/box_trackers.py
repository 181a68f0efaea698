"""Box trackers that can be chosen by name.

Each tracker is imported only when it is built, to keep option parsing fast."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pose.tracking.association import BoxTracker, Similarity


@dataclass(frozen=True, slots=True)
class BoxTrackerChoice:
    """Box tracker that can be chosen by name; `build` takes its memory in s and the comparison of boxes."""

    build: "Callable[[float, Similarity], BoxTracker]"  # function that returns the tracker
    needs_image: bool = False  # whether the tracker needs the image of every frame


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
