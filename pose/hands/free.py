"""Hands without people: for images that hands fill, where no arm says whose they are.

`pose-run --hands` does not use it: hands belong to tracked people there. A hand here has no side and no body.
"""

from dataclasses import dataclass, field

import numpy as np

from pose.hands.filter import HandFilter
from pose.hands.network import HandNetwork, PalmDetector, tracked_regions
from pose.hands.tracker import PRESENT
from pose.networks import crops
from pose.types import F32, U8, Regions

_OVERLAP = 0.3  # IoU of two regions from which on they show one hand


@dataclass(frozen=True, slots=True)
class FreeHands:
    """H hands of one frame. points: (H, 21, 2) px. shapes: (H, 21, 3) m from the wrist, axes of the image. presence:
    (H,). raw: (H, 21, 2) px, as the network gives them, without the filter.
    """

    points: F32
    shapes: F32
    presence: F32
    raw: F32


@dataclass(slots=True)
class _Track:
    points: F32
    pixels: HandFilter = field(default_factory=HandFilter)
    metres: HandFilter = field(default_factory=HandFilter)


class FreeHandTracker:
    """Finds hands with the palm detector and follows them by their own points, as MediaPipe Hands does."""

    def __init__(self, network: HandNetwork, palms: PalmDetector, most: int = 2) -> None:
        """most: hands that are followed; the palm detector runs while there are fewer."""
        self._network, self._palms, self._most = network, palms, most
        self._tracks: list[_Track] = []

    def step(self, image: U8, time: float) -> FreeHands:
        """The hands of the next frame, in the order in which they were found. image: (H, W, 3) uint8 RGB. time: s."""
        regions = [tracked_regions(track.points[None]) for track in self._tracks]
        tracks = list(self._tracks)
        if len(tracks) < self._most:
            found, _ = self._palms.detect(image)
            known = crops.region_boxes(Regions.concatenate(regions))
            for row in range(len(found)):
                box = crops.region_boxes(found[[row]])
                if len(tracks) < self._most and not (crops.box_iou(box, known) > _OVERLAP).any():
                    first = self._network.estimate(image, found[[row]])
                    tracks.append(_Track(first.points[0]))
                    regions.append(tracked_regions(first.points))
        seen = self._network.estimate(image, Regions.concatenate(regions))
        there = np.flatnonzero(seen.presence >= PRESENT).tolist()
        self._tracks = [tracks[row] for row in there]
        points, shapes = np.empty((2, len(there), 21, 3), np.float32)
        for at, row in enumerate(there):
            track = tracks[row]
            track.points = seen.points[row]
            size = max(float(np.ptp(track.points, axis=0).max()), 1e-6)
            points[at, :, :2] = track.pixels(track.points, size, time)
            shapes[at] = track.metres(seen.shapes[row], float(np.ptp(seen.shapes[row], axis=0).max()), time)
        return FreeHands(points[..., :2].copy(), shapes, seen.presence[there], seen.points[there])
