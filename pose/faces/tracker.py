"""The faces of tracked people, frame after frame.

A face that was seen is looked for around its last points, moved with the nose of the body. One that is new or lost is
looked for where nose, eyes and ears of the body are. What is found must lie on that nose, and no face of an image
belongs to two people.
"""

from dataclasses import dataclass, field

import numpy as np

from pose.face_points import CHIN, FOREHEAD, Faces
from pose.faces.network import FaceNetwork, tracked_regions
from pose.hands.filter import HandFilter
from pose.skeletons import Skeleton
from pose.types import F32, U8, Flags, People, Regions

PRESENT = 0.5  # least probability that a crop shows a face
SURE = 0.3  # score from which a joint of the body counts
LEAST_SIDE = 24.0  # px of a crop; in a smaller one nothing can be told
# Side of a crop in distances between joints of the head: ears, eyes, nose to eyes. The largest counts, because a turn
# of the head only shortens them.
_PER_EARS, _PER_EYES, _PER_NOSE = 2.0, 3.6, 3.0
_KEPT = 0.25  # s without a sight after which a face is looked for anew
_AWAY = 0.6  # of a face's extent: the way from the nose of the body to the middle of the face at most
_CLEAR = 0.3  # of a face's extent: the way from chin to forehead from which on it says which side of a face is up
_SAME = 0.3  # of a face's extent: two faces whose points lie nearer together are one


@dataclass(slots=True)
class _Track:
    """A face in mind: where it was last seen (468, 3) px, when (s), and where the nose of the body was (2,) px."""

    points: F32
    time: float
    nose: F32
    smooth: HandFilter = field(default_factory=HandFilter)


@dataclass(frozen=True, slots=True)
class _Heads:
    """Heads of P people. noses: (P, 2) px. necks: (P, 2) px from the middle of the shoulders to the nose, 0 where these
    are not seen. regions: (P,). sure: (P,) whether enough of the head is seen.
    """

    noses: F32
    necks: F32
    regions: Regions
    sure: list[bool]

    @classmethod
    def of(cls, people: People, skeleton: Skeleton) -> "_Heads":
        names = ("nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder")
        at = [skeleton.index(name) for name in names]
        points, scores = people.keypoints[:, at], people.scores[:, at]
        known: Flags = np.asarray((scores >= SURE) & np.isfinite(points).all(axis=-1))
        points = np.where(known[..., None], points, 0).astype(np.float32)
        nose, left, right = points[:, 0], points[:, 1], points[:, 2]
        both = known[:, 1] & known[:, 2]
        eyes = np.where(both[:, None], (left + right) / 2, np.where(known[:, 1:2], left, right))
        across = np.where(both[:, None], left - right, 0).astype(np.float32)
        ears = np.where(known[:, 3] & known[:, 4], np.linalg.norm(points[:, 3] - points[:, 4], axis=1), 0)
        sides = np.max(
            [
                _PER_EARS * ears,
                _PER_EYES * np.linalg.norm(across, axis=1),
                _PER_NOSE * np.linalg.norm(nose - eyes, axis=1),
            ],
            axis=0,
        )
        regions = Regions(
            ((nose + eyes) / 2).astype(np.float32),
            np.repeat(sides[:, None], 2, axis=1).astype(np.float32),
            np.arctan2(across[:, 1], across[:, 0]).astype(np.float32),
        )
        upright = known[:, 0] & known[:, 5] & known[:, 6]
        necks = np.where(upright[:, None], nose - (points[:, 5] + points[:, 6]) / 2, 0).astype(np.float32)
        return cls(nose, necks, regions, (known[:, 0] & (known[:, 1] | known[:, 2])).tolist())


class FaceTracker:
    """Adds faces to the people of one stream; implements no protocol of another stage."""

    def __init__(self, network: FaceNetwork, skeleton: Skeleton) -> None:
        """skeleton: of the people's keypoints. Raises ValueError for one without nose, eyes and ears."""
        self._network, self._skeleton = network, skeleton
        self._tracks: dict[int, _Track] = {}

    def step(self, image: U8, people: People) -> Faces:
        """The faces of the people of the next frame.

        Args:
            image: (H, W, 3) uint8 RGB.
            people: in it, with `time` increasing from call to call.

        Returns:
            Faces in the order of `people`.
        """
        if people.cut:
            self._tracks = {}
        heads, ids, time = _Heads.of(people, self._skeleton), people.ids.tolist(), people.time
        found = self._known(image, heads, ids, time)
        wanted = [row for row in range(len(ids)) if row not in found and heads.sure[row]]
        first = self._sights(image, heads, wanted, heads.regions[wanted])
        if first:  # once more, from nearer
            rows = list(first)
            found |= self._sights(image, heads, rows, tracked_regions(np.array([first[row][0] for row in rows])))
        _drop_repeated(found, heads)
        faces = Faces.unseen(len(ids))
        for row, (points, presence) in found.items():
            track = self._tracks.get(ids[row])
            if track is None or time - track.time > _KEPT:
                track = self._tracks[ids[row]] = _Track(points, time, heads.noses[row])
            track.points, track.time, track.nose = points, time, heads.noses[row]
            faces.points[row] = track.smooth(points, _extent(points), time)
            faces.scores[row] = presence
        self._tracks = {key: track for key, track in self._tracks.items() if time - track.time <= _KEPT}
        return faces

    def _known(self, image: U8, heads: _Heads, ids: list[int], time: float) -> dict[int, tuple[F32, float]]:
        """Faces that were seen a moment ago, where they must be now."""
        rows, points = [], []
        for row, person in enumerate(ids):
            track = self._tracks.get(person)
            if track is not None and time - track.time <= _KEPT:
                moved = track.points.copy()
                if heads.sure[row]:
                    moved[:, :2] += heads.noses[row] - track.nose
                rows.append(row)
                points.append(moved)
        return self._sights(image, heads, rows, tracked_regions(np.array(points))) if rows else {}

    def _sights(self, image: U8, heads: _Heads, rows: list[int], regions: Regions) -> dict[int, tuple[F32, float]]:
        """Points and presence of the faces that the network sees in the regions of some people."""
        large = np.flatnonzero(regions.sizes[:, 0] >= LEAST_SIDE).tolist()
        if not large:
            return {}
        seen = self._network.estimate(image, regions[large])
        found = {}
        for at, place in enumerate(large):
            row, points = rows[place], seen.points[at]
            if seen.presence[at] >= PRESENT and _fits(points, heads, row):
                found[row] = points, float(seen.presence[at])
        return found


def _extent(points: F32) -> float:
    """The diagonal of a face's box, px."""
    return max(float(np.linalg.norm(np.ptp(points[:, :2], axis=0))), 1e-6)


def _away(points: F32, nose: F32) -> float:
    """How far the body's nose is from the middle of a face, in its extents."""
    return float(np.linalg.norm(points[:, :2].mean(axis=0) - nose)) / _extent(points)


def _fits(points: F32, heads: _Heads, row: int) -> bool:
    """Whether a face lies on the body's nose, and not upside down on its neck, as far as these are seen."""
    if heads.sure[row] and _away(points, heads.noses[row]) > _AWAY:
        return False
    up = points[FOREHEAD, :2] - points[CHIN, :2]
    clear = float(np.linalg.norm(up)) > _CLEAR * _extent(points)
    return not clear or float(up @ heads.necks[row]) >= 0


def _drop_repeated(found: dict[int, tuple[F32, float]], heads: _Heads) -> None:
    """Of two people who claim one face, the one whose nose is nearer to its middle keeps it."""
    rows = list(found)
    for at, row in enumerate(rows):
        for other in rows[at + 1 :]:
            if row not in found or other not in found:
                continue
            one, two = found[row][0], found[other][0]
            way = float(np.linalg.norm((one - two)[:, :2], axis=1).mean())
            if way < _SAME * min(_extent(one), _extent(two)):
                del found[max(row, other, key=lambda who: _away(found[who][0], heads.noses[who]))]
