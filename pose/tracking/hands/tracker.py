"""Tracking of hands on tracked people.

The search region of a known hand is around its last points, moved with the wrist of the body. The search region of a
new or lost hand lies where the arm points. At intervals, the palm detector also searches around the wrist. A hand must
be at the end of its arm, and each hand belongs to one arm only.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

import numpy as np

from pose.networks import crops
from pose.networks.hands import HandNetwork, HandOutputs, PalmDetector, tracked_regions
from pose.structures.hand_filter import HandFilter
from pose.structures.hand_points import MIDDLE_KNUCKLE, WRIST, Hands
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, U8, People, Regions
from pose.tracking.hands.arms import Arms

MIN_PRESENCE = 0.5  # minimum probability that a crop shows a hand
MIN_CROP_PX = 24.0  # minimum side of a crop, px
PALM_INTERVAL_S = 0.3  # interval of the palm detector for a lost hand, s
_PALM_WINDOW = 3.0  # side of the search window around the wrist, in forearms
_MAX_WRIST_FOREARMS = 0.5  # maximum distance from the body's wrist to the hand's wrist, in forearms
_MIN_EXTENT_FOREARMS, _MAX_EXTENT_FOREARMS = 0.2, 1.8  # extent of a hand, in forearms
_MAX_UNSEEN_S = 0.25  # s without a detection after which a track ends
_DUPLICATE_EXTENTS = 0.3  # mean distance of points below which two hands are duplicates, in hand extents

Key = tuple[int, int]  # id of the person, side
Arm = tuple[int, int]  # row of the person, side; index of the arrays of `Arms`


@dataclass(slots=True)
class _Track:
    """A tracked hand, and the body's wrist at its last detection."""

    points: F32  # (21, 2) px at the last detection
    time: float  # time of the last detection, s
    wrist: F32  # (2,) px, wrist of the body at that time
    pixels: HandFilter = field(default_factory=HandFilter)
    metres: HandFilter = field(default_factory=HandFilter)


@dataclass(slots=True)
class _Detection:
    """A detected hand: row of the person, side of the arm, and outputs of the network."""

    row: int
    side: int
    points: F32
    shape: F32
    presence: float


class HandTracker:
    """Tracker of the hands of tracked people in one video stream."""

    def __init__(self, network: HandNetwork, palms: PalmDetector | None, skeleton: Skeleton) -> None:
        """Start without hands."""
        self._network, self._palms, self._skeleton = network, palms, skeleton
        self._tracks: dict[Key, _Track] = {}
        self._next_palm: dict[Key, float] = {}

    def step(self, image: U8, people: People) -> Hands:
        """Find the hands of the people in the next frame.

        Raises:
            ValueError: If the skeleton lacks wrists, elbows, shoulders or hips.
        """
        if people.cut:
            self._tracks, self._next_palm = {}, {}
        arms = Arms.of(people, self._skeleton)
        ids = people.ids.tolist()
        detections = self._tracked_hands(image, arms, ids, people.time)
        detections |= self._new_hands(image, arms, ids, detections.keys(), people.time)
        self._resolve_duplicates(image, arms, detections)
        return self._finish(image, arms, ids, detections, people.time)

    def _tracked_hands(self, image: U8, arms: Arms, ids: Sequence[int], time: float) -> dict[Arm, _Detection]:
        """Return the tracked hands that are found at their expected positions."""
        targets, points = [], []
        for row, person in enumerate(ids):
            for side in range(2):
                track = self._tracks.get((person, side))
                if track is not None and time - track.time <= _MAX_UNSEEN_S:
                    moved = arms.wrists[row, side] - track.wrist if arms.valid[row, side] else np.zeros(2, np.float32)
                    targets.append((row, side))
                    points.append(track.points + moved)
        if not targets:
            return {}
        return self._detections(image, arms, targets, tracked_regions(np.array(points, np.float32)))

    def _new_hands(
        self, image: U8, arms: Arms, ids: Sequence[int], tracked: Container[Arm], time: float
    ) -> dict[Arm, _Detection]:
        """Return new hands of arms that have a detected wrist but no tracked hand, estimated in two passes."""
        missing = [
            (row, side)
            for row in range(len(ids))
            for side in range(2)
            if (row, side) not in tracked and arms.valid[row, side]
        ]
        found = self._two_passes(image, arms, missing, arms.regions[[2 * row + side for row, side in missing]])
        if self._palms is None:
            return found
        for row, side in missing:
            key = ids[row], side
            if (row, side) not in found and time >= self._next_palm.get(key, -np.inf):
                self._next_palm[key] = time + PALM_INTERVAL_S
                found |= self._by_palm(image, arms, row, side)
        return found

    def _by_palm(self, image: U8, arms: Arms, row: int, side: int) -> dict[Arm, _Detection]:
        """Return the hand that the palm detector finds nearest to a wrist."""
        assert self._palms is not None
        length, wrist = float(arms.forearms[row]), arms.wrists[row, side]
        if _PALM_WINDOW * length < 2 * MIN_CROP_PX:
            return {}
        window = Regions(wrist[None], np.full((1, 2), _PALM_WINDOW * length, np.float32), np.zeros(1, np.float32))
        regions, _ = self._palms.detect(image, window)
        if not len(regions):
            return {}
        nearest = int(np.linalg.norm(regions.centers - wrist, axis=1).argmin())
        return self._two_passes(image, arms, [(row, side)], regions[[nearest]])

    def _two_passes(self, image: U8, arms: Arms, targets: list[Arm], regions: Regions) -> dict[Arm, _Detection]:
        """Return hands estimated in two passes. The second crop is around the points of the first pass."""
        first = self._detections(image, arms, targets, regions)
        if not first:
            return {}
        points = np.array([detection.points for detection in first.values()], np.float32)
        return self._detections(image, arms, list(first), tracked_regions(points))

    def _detections(self, image: U8, arms: Arms, targets: list[Arm], regions: Regions) -> dict[Arm, _Detection]:
        """Return the plausible hands in the regions."""
        large = np.flatnonzero(regions.sizes[:, 0] >= MIN_CROP_PX).tolist()
        if not large:
            return {}
        found = self._network.estimate(image, regions[large])
        seen = {}
        for at, index in enumerate(large):
            row, side = targets[index]
            if found.presence[at] >= MIN_PRESENCE and _fits(found.points[at], arms, row, side):
                seen[row, side] = _detection(found, at, row, side)
        return seen

    def _resolve_duplicates(self, image: U8, arms: Arms, detections: dict[Arm, _Detection]) -> None:
        """Assign a hand shared by two arms to the arm that it fits better, and search the other arm again."""
        for arm, other in _duplicates(detections, arms):
            if arm not in detections or other not in detections:
                continue
            loser = max(arm, other, key=lambda one: _distance(detections[one], arms))
            winner = other if loser == arm else arm
            del detections[loser]
            if not arms.valid[loser]:
                continue
            again = self._two_passes(image, arms, [loser], arms.regions[[2 * loser[0] + loser[1]]])
            if loser in again and not _same(again[loser], detections[winner]):
                detections[loser] = again[loser]

    def _finish(
        self, image: U8, arms: Arms, ids: Sequence[int], detections: dict[Arm, _Detection], time: float
    ) -> Hands:
        """Smooth the hands and update the tracks."""
        hands = Hands.unknown(len(ids))
        for (row, side), detection in detections.items():
            key = ids[row], side
            track = self._tracks.get(key)
            if track is None or time - track.time > _MAX_UNSEEN_S:
                track = _Track(detection.points, time, arms.wrists[row, side])
            track.points, track.time, track.wrist = detection.points, time, arms.wrists[row, side]
            self._tracks[key] = track
            smooth = track.pixels(detection.points, _extent(detection.points), time)
            shape = track.metres(detection.shape, _extent(detection.shape), time)
            hands.points[row, side], hands.shapes[row, side] = smooth, shape - shape[:1]
            hands.scores[row, side] = np.where(crops.outside(smooth, image), 0, detection.presence)
        self._tracks = {key: track for key, track in self._tracks.items() if time - track.time <= _MAX_UNSEEN_S}
        self._next_palm = {key: due for key, due in self._next_palm.items() if due > time}
        return hands


def _detection(found: HandOutputs, at: int, row: int, side: int) -> _Detection:
    return _Detection(row, side, found.points[at], found.shapes[at], float(found.presence[at]))


def _extent(points: F32) -> float:
    """Return the diagonal of the bounding box of points (21, D)."""
    return max(float(np.linalg.norm(points.max(axis=0) - points.min(axis=0))), 1e-6)


def _fits(points: F32, arms: Arms, row: int, side: int) -> bool:
    """Return whether the size and wrist of a hand match the body. Joints that are not detected are ignored."""
    length = float(arms.forearms[row])
    if length <= 0:
        return True
    if not _MIN_EXTENT_FOREARMS * length <= _extent(points) <= _MAX_EXTENT_FOREARMS * length:
        return False
    distance = float(np.linalg.norm(points[WRIST] - arms.wrists[row, side]))
    return distance <= _MAX_WRIST_FOREARMS * length or not arms.valid[row, side]


def _distance(detection: _Detection, arms: Arms) -> float:
    """Return the mismatch of a hand and its arm, in forearm lengths."""
    # It is the distance between the wrists, plus half the distance of the middle knuckle from the expected centre of
    # the hand.
    length = max(float(arms.forearms[detection.row]), 1e-6)
    wrist = float(np.linalg.norm(detection.points[WRIST] - arms.wrists[detection.row, detection.side]))
    middle = arms.regions.centers[2 * detection.row + detection.side]
    return (wrist + 0.5 * float(np.linalg.norm(detection.points[MIDDLE_KNUCKLE] - middle))) / length


def _same(one: _Detection, other: _Detection) -> bool:
    distance = float(np.linalg.norm(one.points - other.points, axis=1).mean())
    return distance < _DUPLICATE_EXTENTS * min(_extent(one.points), _extent(other.points))


def _duplicates(detections: dict[Arm, _Detection], arms: Arms) -> list[tuple[Arm, Arm]]:
    """Return the pairs of arms that share one hand."""
    targets = list(detections)
    return [
        (arm, other)
        for at, arm in enumerate(targets)
        for other in targets[at + 1 :]
        if _same(detections[arm], detections[other])
    ]
