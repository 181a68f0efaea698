"""People in one frame while it is decided who they are."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pose.networks import crops
from pose.people.evidence import Past, median
from pose.people.identities import NOT_SEEN_BEFORE
from pose.people.region_filter import RegionFilter
from pose.types import F32, Keypoints2D, Regions

# Two poses are one person where half of their joints are closer than this part of the larger body.
SAME_POSE = 0.15
# The same where one of them was taken out of the picture when the other was looked for: they stand close together.
SAME_AFTER_HIDING = 0.05


@dataclass(slots=True, eq=False)
class Track:
    """One person in view. id: NOT_SEEN_BEFORE until identities are assigned. region: one row. occluders: who stands
    in front, and is taken out of the picture before this person is looked for.
    """

    region: Regions
    id: int = NOT_SEEN_BEFORE
    filter: RegionFilter = field(default_factory=RegionFilter)
    past: Past | None = None
    occluders: list["Track"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
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
        everybody = np.arange(len(self))
        rows = everybody[keep]
        if np.array_equal(rows, everybody):
            return self
        k = self.keypoints
        kept = Keypoints2D(k.xy[rows], k.scores[rows], k.presence[rows], k.next_regions[rows])
        return Seen([self.tracks[row] for row in rows.tolist()], kept, self.boxes[rows])

    def join(self, other: "Seen") -> "Seen":
        a, b = self.keypoints, other.keypoints
        joined = Keypoints2D(
            np.concatenate([a.xy, b.xy]),
            np.concatenate([a.scores, b.scores]),
            np.concatenate([a.presence, b.presence]),
            Regions.concatenate([a.next_regions, b.next_regions]),
        )
        return Seen(self.tracks + other.tracks, joined, np.concatenate([self.boxes, other.boxes]))

    @property
    def sizes(self) -> F32:
        """(P,) px, the longer side of each box."""
        return np.asarray((self.boxes[:, 2:] - self.boxes[:, :2]).max(axis=1))

    @property
    def overlap(self) -> F32:
        """(P, P) IoU of the boxes."""
        return crops.box_iou(self.boxes, self.boxes)

    def same(self, row: int, others: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of `others` show the pose of `row`."""
        xy, sizes = self.keypoints.xy, self.sizes
        distances = median(np.linalg.norm(xy[others] - xy[row], axis=-1))
        track = self.tracks[row]
        hidden = [self.tracks[i] in track.occluders or track in self.tracks[i].occluders for i in others.tolist()]
        limits = np.where(np.array(hidden, bool), SAME_AFTER_HIDING, SAME_POSE)
        return np.asarray(distances < limits * np.maximum(sizes[others], sizes[row]))


def repeated(seen: Seen) -> NDArray[np.bool_]:
    """(P,) True for a pose that an earlier row shows already. Rows are ordered: oldest tracks first, then newcomers."""
    found = np.zeros(len(seen), bool)
    for row in range(1, len(seen)):
        earlier = np.flatnonzero(~found[:row])
        found[row] = seen.same(row, earlier).any()
    return found
