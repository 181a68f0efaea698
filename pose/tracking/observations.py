"""Tracks in one frame with their estimated poses.

People are not tracked if `TrackingConfig.max_people` is reached, or if no pose was found for them.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pose.networks import crops
from pose.structures.defaults import SEEN_SCORE
from pose.structures.region_filter import RegionFilter
from pose.structures.types import F32, Boxes, Keypoints2D, Regions
from pose.tracking.association import MIN_START_SCORE
from pose.tracking.identities import UNASSIGNED
from pose.tracking.person_state import MIN_TOUCHING_IOU, PersonState, lengths, median

# Fraction of the smaller of two boxes; more overlap means the same person or an occluded one.


def count_untracked(detections: Boxes, tracked: F32) -> int:
    """Return the number of detections with a score of at least 0.5 that overlap no tracked person."""
    boxes = detections.xyxy[detections.scores >= MIN_START_SCORE]
    if not len(boxes):
        return 0
    low = np.maximum(boxes[:, None, :2], tracked[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], tracked[None, :, 2:])
    common = (high - low).clip(min=0).prod(axis=2)
    smaller = np.minimum(_areas(boxes)[:, None], _areas(tracked)[None])
    return int((~(common > MIN_COVERED_FRACTION * smaller).any(axis=1)).sum())


def _areas(boxes: F32) -> F32:
    return np.asarray((boxes[:, 2:] - boxes[:, :2]).prod(axis=1))


# Two poses are duplicates if the median distance of their joints is below this fraction of the larger box.
MAX_DUPLICATE_DISTANCE = 0.15
# The same for a pose that was found with the other one masked, because such people do stand close together.
MAX_MASKED_DUPLICATE_DISTANCE = 0.05
MIN_DETECTION_IOU = 0.35  # minimum IoU of a detection and the box around the joints of the same person
MIN_SIZE_PX = 1e-6
MIN_COVERED_FRACTION = 0.5  # boxes also touch if more than this fraction of the smaller one is inside the other


@dataclass(slots=True, eq=False)
class PersonTrack:
    """One tracked person."""

    region: Regions  # region to crop in the next frame, a `Regions` of length 1
    id: int = UNASSIGNED  # person id; `UNASSIGNED` until ids are assigned at the end of the first frame
    region_filter: RegionFilter = field(default_factory=RegionFilter)  # filter that smooths the region over time
    state: PersonState | None = None  # position and appearance in the last frame; None before the first frame ends
    occluders: list["PersonTrack"] = field(default_factory=list)  # tracks in front of this person
    detected_at: float = -math.inf  # time of the detection that started the track, s


@dataclass(frozen=True)
class Observations:
    """Tracks and their poses in one frame."""

    tracks: list[PersonTrack]  # P tracks
    keypoints: Keypoints2D  # output of the estimator for the P tracks
    boxes: F32  # (P, 4) xyxy px, boxes around the joints with a score above 0

    @classmethod
    def of(cls, tracks: list[PersonTrack], keypoints: Keypoints2D) -> "Observations":
        """Build observations from P tracks and the estimator's output for their regions, in the same order."""
        return cls(tracks, keypoints, crops.bounds(keypoints.xy, keypoints.scores > 0))

    def __len__(self) -> int:
        return len(self.tracks)

    def select(self, keep: NDArray[np.bool_] | NDArray[np.int64]) -> "Observations":
        """Return the tracks and poses selected by `keep`, a mask (P,) or indices in any order."""
        if keep.dtype == bool:
            if keep.all():
                return self
            keep = np.flatnonzero(keep)
        rows = keep.tolist()
        if rows == list(range(len(self))):
            return self
        return Observations([self.tracks[row] for row in rows], self.keypoints[keep], self.boxes[keep])

    def join(self, other: "Observations") -> "Observations":
        """Return the tracks and poses of these observations, followed by those of `other`."""
        boxes = np.concatenate([self.boxes, other.boxes])
        return Observations(self.tracks + other.tracks, self.keypoints + other.keypoints, boxes)

    def replaced(self, row: int, other: "Observations") -> "Observations":
        """Return these observations with the only one of `other` in a row."""
        order = np.arange(len(self))
        order[row] = len(self)
        return self.join(other).select(order)

    @cached_property
    def sizes(self) -> F32:
        """Longer side (P,) of each box, px."""
        return np.asarray((self.boxes[:, 2:] - self.boxes[:, :2]).max(axis=1))

    @cached_property
    def iou(self) -> F32:
        """Intersection over union (P, P) of all pairs of boxes."""
        return crops.box_iou(self.boxes, self.boxes)

    @cached_property
    def _distances(self) -> list[list[float]]:
        """Median distance of the joints of each pair of poses, as a fraction of the larger box; P lists of P values."""
        xy, sizes = self.keypoints.xy, self.sizes
        larger = np.maximum(np.maximum(sizes[None], sizes[:, None]), MIN_SIZE_PX)
        return list((median(lengths(xy[None] - xy[:, None])) / larger).tolist())

    def are_close(self, row: int, other: int) -> bool:
        """Return whether two poses are nearly equal; they show the same body unless one person is behind the other."""
        return self._distances[row][other] < MAX_DUPLICATE_DISTANCE

    def are_duplicates(self, row: int, other: int) -> bool:
        """Return whether the poses with indices `row` and `other` are nearly equal and therefore show the same body."""
        if not self.are_close(row, other):
            return False
        distance = self._distances[row][other]
        a, b = self.tracks[row], self.tracks[other]
        return distance < MAX_MASKED_DUPLICATE_DISTANCE or not (a in b.occluders or b in a.occluders)

    def last_is_duplicate(self) -> bool:
        """Return whether the last pose shows the same body as an earlier pose."""
        last = len(self) - 1
        return any(self.are_duplicates(last, row) for row in range(last))


def duplicates(observations: Observations, boxes: F32 | None = None) -> NDArray[np.bool_]:
    """Return a mask (P,), True for entries of `observations` that show the same body as an earlier entry.

    Nearly equal poses of a person and the one in front are one body if fewer than two of the detections `boxes` (N, 4)
    show them.
    """
    found: list[bool] = []
    shown = None if boxes is None else crops.box_iou(joint_boxes(observations.keypoints), boxes) > MIN_DETECTION_IOU
    for row in range(len(observations)):
        same = False
        for other in range(row):
            one = shown is not None and (shown[row] | shown[other]).sum() < 2
            same |= not found[other] and (
                observations.are_duplicates(row, other) or (one and observations.are_close(row, other))
            )
        found.append(same)
    return np.array(found, bool)


def boxes_touch(boxes: F32, people: F32) -> NDArray[np.bool_]:
    """Return (P, Q) whether xyxy boxes touch: IoU above 0.1, or over half of the smaller one inside the other."""
    low = np.maximum(boxes[:, None, :2], people[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], people[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=2)
    a, b = ((x[:, 2:] - x[:, :2]).clip(0).prod(axis=1) for x in (boxes, people))
    smaller = np.maximum(np.minimum(a[:, None], b[None, :]), 1)
    return np.asarray((crops.box_iou(boxes, people) > MIN_TOUCHING_IOU) | (shared / smaller > MIN_COVERED_FRACTION))


def joint_boxes(keypoints: Keypoints2D) -> F32:
    """Return the boxes (P, 4), xyxy px, around joints with a score above 0.3, for the comparison with detections."""
    return crops.bounds(keypoints.xy, keypoints.scores > SEEN_SCORE)


def region_boxes(tracks: list[PersonTrack]) -> F32:
    """Return the boxes (P, 4), xyxy px, around the regions of tracks."""
    return crops.region_boxes(Regions.concatenate([track.region for track in tracks]))
