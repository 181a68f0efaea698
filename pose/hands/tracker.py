"""The hands of tracked people, frame after frame.

A hand that was seen is looked for around its last points, moved with the wrist of the body. One that is new or lost is
looked for where the arm points to, and now and then with the palm detector around the wrist. What is found must hang on
that arm, and no hand of an image belongs to two arms.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field

import numpy as np

from pose.hand_points import MIDDLE_KNUCKLE, WRIST, Hands
from pose.hands.arms import Arms
from pose.hands.filter import HandFilter
from pose.hands.network import Found, HandNetwork, PalmDetector, tracked_regions
from pose.networks import crops
from pose.skeletons import Skeleton
from pose.types import F32, U8, People, Regions

PRESENT = 0.5  # least probability that a crop shows a hand
LEAST_SIDE = 24.0  # px of a crop; in a smaller one nothing can be told
PALM_INTERVAL = 0.3  # s between two runs of the palm detector for one lost hand
_PALM_WINDOW = 3.0  # forearms, the side of the window around the wrist
_WRIST_WITHIN = 0.5  # forearms from the wrist of the body to that of the hand
_LEAST_EXTENT, _MOST_EXTENT = 0.2, 1.8  # forearms: the longest way between two points of a hand
_KEPT = 0.25  # s without a sight after which a hand is looked for anew
_SAME = 0.3  # of a hand's extent: two hands whose points lie nearer together are one

Key = tuple[int, int]  # id of the person, side
Place = tuple[int, int]  # row of the person, side


@dataclass(slots=True)
class _Track:
    """A hand in mind: where it was last seen (21, 2) px, when (s), and where the wrist of the body was (2,) px."""

    points: F32
    time: float
    wrist: F32
    pixels: HandFilter = field(default_factory=HandFilter)
    metres: HandFilter = field(default_factory=HandFilter)


@dataclass(slots=True)
class _Sight:
    """One hand of one frame: the arm's row and side, and the points, shape and presence that the network gives."""

    row: int
    side: int
    points: F32
    shape: F32
    presence: float


class HandTracker:
    """Adds hands to the people of one stream; implements no protocol of another stage."""

    def __init__(self, network: HandNetwork, palms: PalmDetector | None, skeleton: Skeleton) -> None:
        """
        Args:
            network: finds the points of a hand.
            palms: recovers lost hands; None leaves that to the arm.
            skeleton: of the people's keypoints.
        """
        self._network, self._palms, self._skeleton = network, palms, skeleton
        self._tracks: dict[Key, _Track] = {}
        self._next_palm: dict[Key, float] = {}

    def step(self, image: U8, people: People) -> Hands:
        """The hands of the people of the next frame.

        Args:
            image: (H, W, 3) uint8 RGB.
            people: in it, with `time` increasing from call to call.

        Returns:
            Hands in the order of `people`.
        """
        if people.cut:
            self._tracks, self._next_palm = {}, {}
        arms = Arms.of(people, self._skeleton)
        ids = people.ids.tolist()
        sights = self._known(image, arms, ids, people.time)
        sights |= self._new(image, arms, ids, sights.keys(), people.time)
        self._drop_repeated(image, arms, sights)
        return self._finish(image, arms, ids, sights, people.time)

    def _known(self, image: U8, arms: Arms, ids: Sequence[int], time: float) -> dict[Place, _Sight]:
        """Hands that were seen a moment ago, where they must be now."""
        places, points = [], []
        for row, person in enumerate(ids):
            for side in range(2):
                track = self._tracks.get((person, side))
                if track is not None and time - track.time <= _KEPT:
                    moved = arms.wrists[row, side] - track.wrist if arms.sure[row, side] else np.zeros(2, np.float32)
                    places.append((row, side))
                    points.append(track.points + moved)
        if not places:
            return {}
        return self._sights(image, arms, places, tracked_regions(np.array(points, np.float32)))

    def _new(
        self, image: U8, arms: Arms, ids: Sequence[int], known: Container[Place], time: float
    ) -> dict[Place, _Sight]:
        """Hands that are not known, where their arms are sure of them; each is looked at twice, from nearer."""
        wanted = [
            (row, side)
            for row in range(len(ids))
            for side in range(2)
            if (row, side) not in known and arms.sure[row, side]
        ]
        found = self._twice(image, arms, wanted, arms.regions[[2 * row + side for row, side in wanted]])
        if self._palms is None:
            return found
        for row, side in wanted:
            key = ids[row], side
            if (row, side) not in found and time >= self._next_palm.get(key, -np.inf):
                self._next_palm[key] = time + PALM_INTERVAL
                found |= self._by_palm(image, arms, row, side)
        return found

    def _by_palm(self, image: U8, arms: Arms, row: int, side: int) -> dict[Place, _Sight]:
        """A hand that the palm detector finds around a wrist, the nearest to it."""
        assert self._palms is not None
        length, wrist = float(arms.forearms[row]), arms.wrists[row, side]
        if _PALM_WINDOW * length < 2 * LEAST_SIDE:
            return {}
        window = Regions(wrist[None], np.full((1, 2), _PALM_WINDOW * length, np.float32), np.zeros(1, np.float32))
        regions, _ = self._palms.detect(image, window)
        if not len(regions):
            return {}
        nearest = int(np.linalg.norm(regions.centers - wrist, axis=1).argmin())
        return self._twice(image, arms, [(row, side)], regions[[nearest]])

    def _twice(self, image: U8, arms: Arms, places: list[Place], regions: Regions) -> dict[Place, _Sight]:
        """What is seen in regions once more, around the points of the first sight."""
        first = self._sights(image, arms, places, regions)
        if not first:
            return {}
        points = np.array([sight.points for sight in first.values()], np.float32)
        return self._sights(image, arms, list(first), tracked_regions(points))

    def _sights(self, image: U8, arms: Arms, places: list[Place], regions: Regions) -> dict[Place, _Sight]:
        """What the network sees in the regions of some hands, as far as it can be those hands."""
        large = np.flatnonzero(regions.sizes[:, 0] >= LEAST_SIDE).tolist()
        if not large:
            return {}
        found = self._network.estimate(image, regions[large])
        seen = {}
        for at, place in enumerate(large):
            row, side = places[place]
            if found.presence[at] >= PRESENT and _fits(found.points[at], arms, row, side):
                seen[row, side] = _sight(found, at, row, side)
        return seen

    def _drop_repeated(self, image: U8, arms: Arms, sights: dict[Place, _Sight]) -> None:
        """Of two arms that claim one hand, the one it hangs on better keeps it; the other is looked for once more."""
        for place, other in _repeated(sights, arms):
            if place not in sights or other not in sights:
                continue
            loser = max(place, other, key=lambda one: _distance(sights[one], arms))
            winner = other if loser == place else place
            del sights[loser]
            if not arms.sure[loser]:
                continue
            again = self._twice(image, arms, [loser], arms.regions[[2 * loser[0] + loser[1]]])
            if loser in again and not _same(again[loser], sights[winner]):
                sights[loser] = again[loser]

    def _finish(self, image: U8, arms: Arms, ids: Sequence[int], sights: dict[Place, _Sight], time: float) -> Hands:
        """The hands as they go out, smoothed, and what is kept of them for the next frame."""
        hands = Hands.unseen(len(ids))
        for (row, side), sight in sights.items():
            key = ids[row], side
            track = self._tracks.get(key)
            if track is None or time - track.time > _KEPT:
                track = _Track(sight.points, time, arms.wrists[row, side])
            track.points, track.time, track.wrist = sight.points, time, arms.wrists[row, side]
            self._tracks[key] = track
            smooth = track.pixels(sight.points, _extent(sight.points), time)
            shape = track.metres(sight.shape, _extent(sight.shape), time)
            hands.points[row, side], hands.shapes[row, side] = smooth, shape - shape[:1]
            hands.scores[row, side] = np.where(crops.outside(smooth, image), 0, sight.presence)
        self._tracks = {key: track for key, track in self._tracks.items() if time - track.time <= _KEPT}
        self._next_palm = {key: due for key, due in self._next_palm.items() if due > time}
        return hands


def _sight(found: Found, at: int, row: int, side: int) -> _Sight:
    return _Sight(row, side, found.points[at], found.shapes[at], float(found.presence[at]))


def _extent(points: F32) -> float:
    """The longest way between two points (21, D), by a bound: the diagonal of their box."""
    return max(float(np.linalg.norm(points.max(axis=0) - points.min(axis=0))), 1e-6)


def _fits(points: F32, arms: Arms, row: int, side: int) -> bool:
    """Whether a hand has the size of the body's and hangs on its wrist, as far as these are seen."""
    length = float(arms.forearms[row])
    if length <= 0:
        return True
    if not _LEAST_EXTENT * length <= _extent(points) <= _MOST_EXTENT * length:
        return False
    way = float(np.linalg.norm(points[WRIST] - arms.wrists[row, side]))
    return way <= _WRIST_WITHIN * length or not arms.sure[row, side]


def _distance(sight: _Sight, arms: Arms) -> float:
    """How badly a hand hangs on its arm: the way between the wrists, and the way to where the arm expects its middle,
    in forearms.
    """
    length = max(float(arms.forearms[sight.row]), 1e-6)
    wrist = float(np.linalg.norm(sight.points[WRIST] - arms.wrists[sight.row, sight.side]))
    middle = arms.regions.centers[2 * sight.row + sight.side]
    return (wrist + 0.5 * float(np.linalg.norm(sight.points[MIDDLE_KNUCKLE] - middle))) / length


def _same(one: _Sight, other: _Sight) -> bool:
    way = float(np.linalg.norm(one.points - other.points, axis=1).mean())
    return way < _SAME * min(_extent(one.points), _extent(other.points))


def _repeated(sights: dict[Place, _Sight], arms: Arms) -> list[tuple[Place, Place]]:
    """Pairs of arms that claim one hand."""
    places = list(sights)
    return [
        (place, other)
        for at, place in enumerate(places)
        for other in places[at + 1 :]
        if _same(sights[place], sights[other])
    ]
