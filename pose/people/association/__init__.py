"""Association of boxes from frame to frame: SORT's descendants, with real time stamps."""

from pose.people.association.botsort import BotSort
from pose.people.association.bytetrack import ByteTrack
from pose.people.association.ocsort import OcSort
from pose.people.association.tracker import NOBODY, SURE_SCORE, BoxTracker, Similarity, Tracker, box_similarity

__all__ = [
    "NOBODY",
    "SURE_SCORE",
    "BotSort",
    "BoxTracker",
    "ByteTrack",
    "OcSort",
    "Similarity",
    "Tracker",
    "box_similarity",
]
