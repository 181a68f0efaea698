"""Box trackers, which associate boxes from frame to frame: successors of SORT that use the times of the frames."""

from pose.tracking.association.botsort import BotSort
from pose.tracking.association.box_tracker import MIN_START_SCORE, UNMATCHED, BoxTracker, Similarity, box_similarity
from pose.tracking.association.bytetrack import ByteTrack
from pose.tracking.association.ocsort import OcSort

__all__ = [
    "MIN_START_SCORE",
    "UNMATCHED",
    "BotSort",
    "BoxTracker",
    "ByteTrack",
    "OcSort",
    "Similarity",
    "box_similarity",
]
