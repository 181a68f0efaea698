"""The trackers that can be chosen by name. Imports happen when one is built, so that options are parsed without."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pose.people.association import BoxTracker, Similarity


@dataclass(frozen=True, slots=True)
class TrackerChoice:
    """build: makes the tracker for a memory in s and a measure of similarity. sees_pictures: it needs every picture."""

    build: "Callable[[float, Similarity], BoxTracker]"
    sees_pictures: bool = False


def _bytetrack(memory: float, similarity: "Similarity") -> "BoxTracker":
    from pose.people.association import ByteTrack

    return ByteTrack(memory, similarity)


def _ocsort(memory: float, similarity: "Similarity") -> "BoxTracker":
    from pose.people.association import OcSort

    return OcSort(memory, similarity)


def _botsort(memory: float, similarity: "Similarity") -> "BoxTracker":
    from pose.people.association import BotSort

    return BotSort(memory, similarity)


TRACKERS: dict[str, TrackerChoice] = {
    "bytetrack": TrackerChoice(_bytetrack),
    "ocsort": TrackerChoice(_ocsort),
    "botsort": TrackerChoice(_botsort, sees_pictures=True),  # estimates the camera's motion
}
