"""Tracking of hands without detection of people, for images that mainly show hands.

Hands are not labelled left or right, and are not assigned to people. The option `pose-run --hands` finds the hands of
tracked people instead (`pose.tracking.hands.tracker`).
"""

from dataclasses import dataclass, field

import numpy as np

from pose.networks import crops
from pose.networks.hands import HandNetwork, PalmDetector, tracked_regions
from pose.structures.smooth import HandFilter
from pose.structures.types import F32, U8, Regions
from pose.tracking.hands.tracker import MIN_PRESENCE

_DUPLICATE_IOU = 0.3  # IoU from which two regions are duplicates


@dataclass(frozen=True, slots=True)
class FreeHands:
    """H hands of one frame, detected without detection of people and not labelled left or right."""

    points: F32  # (H, 21, 2) px, smoothed points in the order of `pose.structures.hand_points`
    shapes: F32  # (H, 21, 3) m, smoothed points relative to the wrist, in camera axes (x right, y down, z forward)
    presence: F32  # (H,) probability that the points lie on a hand
    raw: F32  # (H, 21, 2) px, `points` before smoothing


@dataclass(slots=True)
class _Track:
    points: F32
    pixels: HandFilter = field(default_factory=HandFilter)
    metres: HandFilter = field(default_factory=HandFilter)


class FreeHandTracker:
    """Tracker of all hands in a video stream, without detection of people, like MediaPipe Hands."""

    # The palm detector finds new hands. A known hand is searched for around its points in the previous frame.

    def __init__(self, network: HandNetwork, palms: PalmDetector, max_hands: int = 2) -> None:
        """Start without hands; the palm detector runs while fewer than `max_hands` are tracked."""
        self._network, self._palms, self._max_hands = network, palms, max_hands
        self._tracks: list[_Track] = []

    def step(self, image: U8, time: float) -> FreeHands:
        """Return the hands in the next frame, (H, W, 3) uint8 RGB, in the order of their first detection."""
        regions = [tracked_regions(track.points[None]) for track in self._tracks]
        tracks = list(self._tracks)
        if len(tracks) < self._max_hands:
            detected, _ = self._palms.detect(image)
            tracked_boxes = crops.region_boxes(Regions.concatenate(regions))
            for row in range(len(detected)):
                box = crops.region_boxes(detected[[row]])
                if len(tracks) < self._max_hands and not (crops.box_iou(box, tracked_boxes) > _DUPLICATE_IOU).any():
                    first = self._network.estimate(image, detected[[row]])
                    tracks.append(_Track(first.points[0]))
                    regions.append(tracked_regions(first.points))
        found_hands = self._network.estimate(image, Regions.concatenate(regions))
        present = np.flatnonzero(found_hands.presence >= MIN_PRESENCE).tolist()
        self._tracks = [tracks[row] for row in present]
        points, shapes = np.empty((2, len(present), 21, 3), np.float32)
        for index, row in enumerate(present):
            track = tracks[row]
            track.points = found_hands.points[row]
            size = max(float(np.ptp(track.points, axis=0).max()), 1e-6)
            points[index, :, :2] = track.pixels(track.points, size, time)
            shapes[index] = track.metres(
                found_hands.shapes[row], float(np.ptp(found_hands.shapes[row], axis=0).max()), time
            )
        return FreeHands(points[..., :2].copy(), shapes, found_hands.presence[present], found_hands.points[present])
