"""Tracking of hands on tracked people.

The search region of a known hand is around its last points, moved with the wrist of the body. The search region of a
new or lost hand lies where the arm points. At intervals, the palm detector also searches around the wrist. A hand must
be at the end of its arm, and each hand belongs to one arm only.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pose.networks import crops
from pose.networks.hands import HandNetwork, HandOutputs, PalmDetector, shifted, tracked_regions
from pose.structures.defaults import SEEN_SCORE
from pose.structures.hand_points import MIDDLE_KNUCKLE, WRIST, Hands
from pose.structures.skeletons import Skeleton
from pose.structures.smooth import HandFilter
from pose.structures.types import F32, U8, People, Regions

# Segment lengths in forearms. Source: Drillis and Contini 1966, in Winter, Biomechanics and Motor Control.
_UPPER_ARM, _SHOULDERS, _TRUNK = 0.186 / 0.146, 0.259 / 0.146, 0.288 / 0.146
# MediaPipe's crop of a hand from a body (`hand_recrop_by_roi`, 0.10.21), centred on the middle knuckle.
_SCALE, _SHIFT = 2.7, -0.1
_MIN_SIDE_FOREARMS, _MAX_SIDE_FOREARMS = 1.3, 2.2  # side of a crop, in forearms
# Distance from the wrist to the crop's centre without known points of the hand, in forearms.
_CENTER_DISTANCE_FOREARMS = 0.4


@dataclass(frozen=True, slots=True)
class Arms:
    """The arms of P people in the image."""

    # `regions` holds 2 P expected regions of the hands: left and right hand of person 0, then of person 1, and so on.

    wrists: F32  # (P, 2, 2) px; axis 1 is left, right, and axis 2 is x, y
    valid: NDArray[np.bool_]
    forearms: F32  # (P,) px, length of a forearm parallel to the image plane; 0 if it cannot be estimated
    regions: Regions  # 2 P expected regions of the hands: left and right hand of person 0, then of person 1, and so on

    @classmethod
    def of(cls, people: People, skeleton: Skeleton) -> "Arms":
        """Compute the arms of the people."""
        wrists, wrist_scores = _joints(people, skeleton, "wrist")
        elbows, elbow_scores = _joints(people, skeleton, "elbow")
        forearms = _forearms(people, skeleton)
        reached = np.asarray(forearms > 0)
        valid = np.asarray((wrist_scores >= SEEN_SCORE) & reached[:, None])
        along = wrists - elbows
        centers = wrists + _CENTER_DISTANCE_FOREARMS * forearms[:, None, None] * _unit(along)
        sides = np.repeat(_MAX_SIDE_FOREARMS / 1.25 * forearms[:, None], 2, axis=1)
        along[np.asarray(elbow_scores < SEEN_SCORE)] = (0, -1)
        if "left_index" in skeleton.names:
            index, index_scores = _joints(people, skeleton, "index")
            pinky, pinky_scores = _joints(people, skeleton, "pinky")
            has_fingers = np.minimum(index_scores, pinky_scores) >= SEEN_SCORE
            middle = (2 * index + pinky) / 3
            hand = middle - wrists
            hand_sides = _SCALE * 2 * np.linalg.norm(hand, axis=-1)
            centers, along = (
                np.where(has_fingers[..., None], middle, centers),
                np.where(has_fingers[..., None], hand, along),
            )
            sides = np.where(has_fingers, hand_sides, sides)
        sides = np.clip(sides, _MIN_SIDE_FOREARMS * forearms[:, None], _MAX_SIDE_FOREARMS * forearms[:, None])
        flat = (values.reshape(-1, 2).astype(np.float32) for values in (centers, along))
        centers, along = flat
        regions = shifted(centers, (sides / _SCALE).reshape(-1).astype(np.float32), along, _SCALE, _SHIFT)
        return cls(wrists, valid, forearms, regions)


def _joints(people: People, skeleton: Skeleton, joint: str) -> tuple[F32, F32]:
    """Return the left and right joint: positions (P, 2, 2) px and scores (P, 2), 0 where a coordinate is unknown."""
    at = [skeleton.index(f"{side}_{joint}") for side in ("left", "right")]
    points, scores = people.keypoints[:, at], people.scores[:, at]
    known = np.asarray(np.isfinite(points).all(axis=-1))
    return np.where(known[..., None], points, 0).astype(np.float32), np.where(known, scores, 0).astype(np.float32)


def _forearms(people: People, skeleton: Skeleton) -> F32:
    """Return forearm lengths (P,) px: the largest estimate, as foreshortening only shortens segments."""
    parts = {joint: _joints(people, skeleton, joint) for joint in ("shoulder", "elbow", "wrist", "hip")}

    def between(start: str, end: str, forearms: float) -> F32:
        (a, of_a), (b, of_b) = parts[start], parts[end]
        length = np.linalg.norm(a - b, axis=-1) / forearms
        result: F32 = np.where((of_a >= SEEN_SCORE) & (of_b >= SEEN_SCORE), length, 0).max(axis=1)
        return result

    shoulders, scores = parts["shoulder"]
    width = np.linalg.norm(shoulders[:, 0] - shoulders[:, 1], axis=-1) / _SHOULDERS
    width = np.where(scores.min(axis=1) >= SEEN_SCORE, width, 0)
    lengths = [
        between("elbow", "wrist", 1.0), between("shoulder", "elbow", _UPPER_ARM), between("shoulder", "hip", _TRUNK),
    ]  # fmt: skip
    result: F32 = np.max([*lengths, width], axis=0).astype(np.float32)
    return result


def _unit(vectors: F32) -> F32:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-6), np.float32)


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
        """Find the hands of people in the next frame; ValueError if the skeleton lacks arms or hips."""
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
