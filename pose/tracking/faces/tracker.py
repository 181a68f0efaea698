"""Tracking of faces on tracked people.

The search region of a known face is around its last points, moved with the nose of the body. The search region of a
new or lost face comes from the nose, eyes and ears of the body. A face must lie on the body's nose, and each face
belongs to one person only.
"""

from dataclasses import dataclass, field

import numpy as np

from pose.networks.faces import FaceNetwork, tracked_regions
from pose.structures.defaults import SEEN_SCORE
from pose.structures.face_points import CHIN, FOREHEAD, Faces
from pose.structures.skeletons import Skeleton
from pose.structures.smooth import HandFilter
from pose.structures.types import F32, U8, Flags, People, Regions

MIN_PRESENCE = 0.5  # minimum probability that a crop shows a face
MIN_CROP_PX = 24.0  # minimum side of a crop, px
# Side of a crop in distances between head joints: ears, eyes, nose to eyes. The largest is used, because rotation of
# the head only shortens them.
_PER_EARS, _PER_EYES, _PER_NOSE = 2.0, 3.6, 3.0
_MAX_UNSEEN_S = 0.25  # s without a detection after which a track ends
_MAX_NOSE_EXTENTS = 0.6  # maximum distance from the body's nose to the centre of the face, in face extents
_MIN_TILT_EXTENTS = 0.3  # minimum distance from chin to forehead that determines which side is up, in face extents
_DUPLICATE_EXTENTS = 0.3  # mean distance of points below which two faces are duplicates, in face extents


@dataclass(slots=True)
class _Track:
    """A tracked face, and the body's nose at its last detection."""

    points: F32  # (468, 3) px at the last detection
    time: float  # time of the last detection, s
    nose: F32  # (2,) px, nose of the body at that time
    smooth: HandFilter = field(default_factory=HandFilter)


@dataclass(frozen=True, slots=True)
class _Heads:
    """Heads of P people, with the regions in which to search for their faces."""

    noses: F32  # (P, 2) px
    necks: F32  # (P, 2) px, vectors from the centre of the shoulders to the nose
    regions: Regions  # regions in which to search for the faces, P rows
    detected: list[bool]  # (P,) whether the nose and an eye are detected

    @classmethod
    def of(cls, people: People, skeleton: Skeleton) -> "_Heads":
        names = ("nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder")
        columns = [skeleton.index(name) for name in names]
        points, scores = people.keypoints[:, columns], people.scores[:, columns]
        is_seen: Flags = np.asarray((scores >= SEEN_SCORE) & np.isfinite(points).all(axis=-1))
        points = np.where(is_seen[..., None], points, 0).astype(np.float32)
        nose, left, right = points[:, 0], points[:, 1], points[:, 2]
        both_eyes = is_seen[:, 1] & is_seen[:, 2]
        eyes = np.where(both_eyes[:, None], (left + right) / 2, np.where(is_seen[:, 1:2], left, right))
        across = np.where(both_eyes[:, None], left - right, 0).astype(np.float32)
        ears = np.where(is_seen[:, 3] & is_seen[:, 4], np.linalg.norm(points[:, 3] - points[:, 4], axis=1), 0)
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
        upright = is_seen[:, 0] & is_seen[:, 5] & is_seen[:, 6]
        necks = np.where(upright[:, None], nose - (points[:, 5] + points[:, 6]) / 2, 0).astype(np.float32)
        return cls(nose, necks, regions, (is_seen[:, 0] & (is_seen[:, 1] | is_seen[:, 2])).tolist())


class FaceTracker:
    """Tracker of the faces of tracked people in one video stream."""

    def __init__(self, network: FaceNetwork, skeleton: Skeleton) -> None:
        """Start without faces."""
        self._network, self._skeleton = network, skeleton
        self._tracks: dict[int, _Track] = {}

    def step(self, image: U8, people: People) -> Faces:
        """Find the faces of people in the next frame; ValueError if the skeleton lacks head or shoulders."""
        if people.cut:
            self._tracks = {}
        heads, ids, time = _Heads.of(people, self._skeleton), people.ids.tolist(), people.time
        found = self._tracked_faces(image, heads, ids, time)
        missing = [row for row in range(len(ids)) if row not in found and heads.detected[row]]
        first = self._detections(image, heads, missing, heads.regions[missing])
        if first:  # a second pass with a tighter crop
            rows = list(first)
            found |= self._detections(image, heads, rows, tracked_regions(np.array([first[row][0] for row in rows])))
        _remove_duplicates(found, heads)
        faces = Faces.unknown(len(ids))
        for row, (points, presence) in found.items():
            track = self._tracks.get(ids[row])
            if track is None or time - track.time > _MAX_UNSEEN_S:
                track = self._tracks[ids[row]] = _Track(points, time, heads.noses[row])
            track.points, track.time, track.nose = points, time, heads.noses[row]
            faces.points[row] = track.smooth(points, _extent(points), time)
            faces.scores[row] = presence
        self._tracks = {key: track for key, track in self._tracks.items() if time - track.time <= _MAX_UNSEEN_S}
        return faces

    def _tracked_faces(self, image: U8, heads: _Heads, ids: list[int], time: float) -> dict[int, tuple[F32, float]]:
        """Return the tracked faces that are found at their expected positions, by row of the person."""
        rows, points = [], []
        for row, person in enumerate(ids):
            track = self._tracks.get(person)
            if track is not None and time - track.time <= _MAX_UNSEEN_S:
                moved = track.points.copy()
                if heads.detected[row]:
                    moved[:, :2] += heads.noses[row] - track.nose
                rows.append(row)
                points.append(moved)
        return self._detections(image, heads, rows, tracked_regions(np.array(points))) if rows else {}

    def _detections(self, image: U8, heads: _Heads, rows: list[int], regions: Regions) -> dict[int, tuple[F32, float]]:
        """Return points and presence of the plausible faces in the regions, by row of the person."""
        large = np.flatnonzero(regions.sizes[:, 0] >= MIN_CROP_PX).tolist()
        if not large:
            return {}
        seen = self._network.estimate(image, regions[large])
        detections = {}
        for at, index in enumerate(large):
            row, points = rows[index], seen.points[at]
            if seen.presence[at] >= MIN_PRESENCE and _fits(points, heads, row):
                detections[row] = points, float(seen.presence[at])
        return detections


def _extent(points: F32) -> float:
    """Return the diagonal of a face's bounding box, px."""
    return max(float(np.linalg.norm(np.ptp(points[:, :2], axis=0))), 1e-6)


def _nose_distance(points: F32, nose: F32) -> float:
    """Return the distance of the body's nose from the centre of a face, relative to the face diagonal."""
    return float(np.linalg.norm(points[:, :2].mean(axis=0) - nose)) / _extent(points)


def _fits(points: F32, heads: _Heads, row: int) -> bool:
    """Return whether a face is at the detected nose and not upside down relative to the neck."""
    if heads.detected[row] and _nose_distance(points, heads.noses[row]) > _MAX_NOSE_EXTENTS:
        return False
    up = points[FOREHEAD, :2] - points[CHIN, :2]
    clear = float(np.linalg.norm(up)) > _MIN_TILT_EXTENTS * _extent(points)
    return not clear or float(up @ heads.necks[row]) >= 0


def _remove_duplicates(found: dict[int, tuple[F32, float]], heads: _Heads) -> None:
    """Remove a face shared by two people from the person whose nose is farther from the face's centre."""
    rows = list(found)
    for at, row in enumerate(rows):
        for other in rows[at + 1 :]:
            if row not in found or other not in found:
                continue
            points, other_points = found[row][0], found[other][0]
            distance = float(np.linalg.norm((points - other_points)[:, :2], axis=1).mean())
            if distance < _DUPLICATE_EXTENTS * min(_extent(points), _extent(other_points)):
                del found[max(row, other, key=lambda row: _nose_distance(found[row][0], heads.noses[row]))]
