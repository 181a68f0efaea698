"""People in one frame while it is decided who they are."""

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pose.networks import crops
from pose.people.evidence import TOUCHING, Past, lengths, median
from pose.people.identities import NOT_SEEN_BEFORE
from pose.people.region_filter import RegionFilter
from pose.types import F32, Keypoints2D, Regions

# Two poses are one person where half of their joints are closer than this part of the larger body.
SAME_POSE = 0.15
# The same where one of them was taken out of the picture when the other was looked for: they stand close together.
SAME_AFTER_HIDING = 0.05
TINY = 1e-6  # px
COVERED = 0.5  # people also touch where one is covered so much by the other


@dataclass(slots=True, eq=False)
class Track:
    """One person in view. id: NOT_SEEN_BEFORE until identities are assigned. region: one row. occluders: who stands
    in front, and is taken out of the picture before this person is looked for. found: s, when a detection showed this
    person first.
    """

    region: Regions
    id: int = NOT_SEEN_BEFORE
    filter: RegionFilter = field(default_factory=RegionFilter)
    past: Past | None = None
    occluders: list["Track"] = field(default_factory=list)
    found: float = -math.inf


@dataclass(frozen=True)
class Seen:
    """Tracks and what the estimator says of them, row by row. boxes: (P, 4) xyxy px around the joints."""

    tracks: list[Track]
    keypoints: Keypoints2D
    boxes: F32

    @classmethod
    def of(cls, tracks: list[Track], keypoints: Keypoints2D) -> "Seen":
        return cls(tracks, keypoints, crops.bounds(keypoints.xy, keypoints.scores > 0))

    def __len__(self) -> int:
        return len(self.tracks)

    def select(self, keep: NDArray[np.bool_] | NDArray[np.int64]) -> "Seen":
        """Some of the rows, in the order of `keep`."""
        if keep.dtype == bool:
            if keep.all():
                return self
            keep = np.flatnonzero(keep)
        rows = keep.tolist()
        if rows == list(range(len(self))):
            return self
        k = self.keypoints
        kept = Keypoints2D(k.xy[keep], k.scores[keep], k.presence[keep], k.next_regions[keep])
        return Seen([self.tracks[row] for row in rows], kept, self.boxes[keep])

    def join(self, other: "Seen") -> "Seen":
        a, b = self.keypoints, other.keypoints
        joined = Keypoints2D(
            np.concatenate([a.xy, b.xy]),
            np.concatenate([a.scores, b.scores]),
            np.concatenate([a.presence, b.presence]),
            Regions.concatenate([a.next_regions, b.next_regions]),
        )
        return Seen(self.tracks + other.tracks, joined, np.concatenate([self.boxes, other.boxes]))

    @cached_property
    def sizes(self) -> F32:
        """(P,) px, the longer side of each box."""
        return np.asarray((self.boxes[:, 2:] - self.boxes[:, :2]).max(axis=1))

    @cached_property
    def overlap(self) -> F32:
        """(P, P) IoU of the boxes."""
        return crops.box_iou(self.boxes, self.boxes)

    @cached_property
    def _distances(self) -> list[list[float]]:
        """(P, P) the median distance of the joints of two poses, as a part of the larger body."""
        xy, sizes = self.keypoints.xy, self.sizes
        larger = np.maximum(np.maximum(sizes[None], sizes[:, None]), TINY)
        return list((median(lengths(xy[None] - xy[:, None])) / larger).tolist())

    def same(self, row: int, other: int) -> bool:
        """Whether two rows show one pose."""
        distance = self._distances[row][other]
        if distance >= SAME_POSE:
            return False
        a, b = self.tracks[row], self.tracks[other]
        return distance < SAME_AFTER_HIDING or not (a in b.occluders or b in a.occluders)

    def repeats(self) -> bool:
        """Whether the last row shows the pose of an earlier one."""
        last = len(self) - 1
        return any(self.same(last, row) for row in range(last))


def repeated(seen: Seen) -> NDArray[np.bool_]:
    """(P,) True for a pose that an earlier row shows already. Rows are ordered: oldest tracks first, then newcomers."""
    found: list[bool] = []
    for row in range(len(seen)):
        found.append(any(seen.same(row, earlier) for earlier in range(row) if not found[earlier]))
    return np.array(found, bool)


def touch(boxes: F32, people: F32) -> NDArray[np.bool_]:
    """(P, Q) whether boxes (P, 4) and people (Q, 4) touch, or one is mostly inside the other."""
    low = np.maximum(boxes[:, None, :2], people[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], people[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=2)
    a, b = ((x[:, 2:] - x[:, :2]).clip(0).prod(axis=1) for x in (boxes, people))
    smaller = np.maximum(np.minimum(a[:, None], b[None, :]), 1)
    return np.asarray((crops.box_iou(boxes, people) > TOUCHING) | (shared / smaller > COVERED))
