"""Straight lines of the background, found while the video is read, as evidence of gravity and focal length.

`SegmentFinder` finds them with R. Grompone von Gioi et al., "LSD: a line segment detector", IPOL 2012, in OpenCV. Each
one is vertical, horizontal in one of two perpendicular directions, or unrelated: a mixture, as in J. M. Coughlan and
A. L. Yuille, "Manhattan World", ICCV 1999.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import cv2
import numpy as np

from pose.structures.camera import Camera
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, F64, I64, NO_LINK, U8, Background, People
from pose.world.camera_motion.path import CameraPath, scene_numbers
from pose.world.camera_motion.reduced import people_mask

MIN_SEGMENTS = 6  # of a scene
MAX_LINES = 120  # of all frames, about: more cost time, and do not count (`_MAX_INDEPENDENT`)
_END_SIGMA_PX = 1.0  # standard deviation of the ends of a segment across it, px of the reduced image
_SAME = 0.005  # distance of the ends of one segment in two frames of a static camera, relative to the longer side
_MOVING_INTERVAL_S, _MOVING_FRAMES = 1.0, 12  # s between the frames of a moving camera, and most of them

# Fractions of vertical, horizontal and other segments; minimum standard deviations of the direction of a segment and
# of the plane through the camera and the segment, rad.
_VERTICAL, _HORIZONTAL, _OTHER = 0.3, 0.35, 0.35
_DIRECTION_SIGMA, _PLANE_SIGMA = np.radians([0.4, 0.15])
# Segments of one wall or frame err together: the likelihood counts as that of so many independent segments at most.
_INDEPENDENT, _MAX_INDEPENDENT = 0.4, 25.0
_SHARES = np.array([_VERTICAL, _HORIZONTAL / 2, _HORIZONTAL / 2]) / math.sqrt(2 * math.pi)
_MAX_ELEMENTS = 10_000  # candidates x axes x segments that are computed together, in the processor's cache
_MIN_EXPONENT = -60.0  # numbers that are not normalised are slow

# Vectors of L segments in the axes of the path: the parts (6, L) of x y and of z, and the squared lengths (L,) of both.
_Turned = tuple[F64, F64, F64]


@dataclass(frozen=True, slots=True)
class FrameLines:
    """Line segments of one frame."""

    time: float  # s
    ends: F64  # (L, 2, 2) ends in image coordinates of the camera at depth 1, without distortion
    sigmas: F64  # (L,) rad, standard deviation of the direction in the image

    @classmethod
    def of(cls, time: float, ends: F32, camera: Camera) -> Self:
        """Return the lines of a frame from the ends (L, 2, 2) px of line segments."""
        rays = camera.unproject(ends.reshape(-1, 2).astype(np.float64)).reshape(-1, 2, 2)
        lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=-1) * reduction(camera.size)
        sigmas = np.hypot(np.sqrt(2) * _END_SIGMA_PX / np.maximum(lengths, 1.0), _DIRECTION_SIGMA)
        return cls(time, np.asarray(rays, np.float64), sigmas)


@dataclass(frozen=True, slots=True)
class LineEvidence:
    """Line segments of one scene, in the axes of the camera's path."""

    ends: F64  # (L, 2, 2) as in `FrameLines`, at the focal length of the frame
    sigmas: F64  # (L,) rad
    rotations: F64  # (L, 3, 3) from the axes of the frame to those of the path

    def __len__(self) -> int:
        return len(self.ends)

    def without(self, others: "Sequence[LineEvidence]") -> "LineEvidence":
        """Return the lines that frames with the same orientation of the camera do not have."""
        known = [one.ends for one in others if np.array_equal(one.rotations[:1], self.rotations[:1])]
        apart = np.abs(self.ends[:, None] - np.concatenate([self.ends[:0], *known])).max(axis=(2, 3), initial=0.0)
        new = (apart > _SAME).all(axis=1)
        return LineEvidence(self.ends[new], self.sigmas[new], self.rotations[new])

    def log_likelihood(self, ups: F64, focals: F64, headings: F64) -> F64:
        """Return the log likelihood (B,) of verticals (B, 3), relative focal lengths (B,) and headings (B,) rad."""
        if not len(self):
            return np.zeros(len(ups))
        level = np.cross(ups, [0.0, 0.0, 1.0])
        level /= np.maximum(np.linalg.norm(level, axis=-1, keepdims=True), 1e-6)
        ahead = np.cross(level, ups)
        cosine, sine = np.cos(headings)[:, None], np.sin(headings)[:, None]
        axes = np.stack([ups, cosine * level + sine * ahead, cosine * ahead - sine * level], axis=1)  # (B, 3, 3)
        # Normals of the planes through the camera and the segments, and rays to the middles of the segments. Up to a
        # factor, only their z depends on the focal length f: it is divided by f and multiplied by f.
        first, last = self.ends[:, 0], self.ends[:, 1]
        cross = first[:, 0] * last[:, 1] - first[:, 1] * last[:, 0]
        normals = self._turned(np.column_stack([first[:, 1] - last[:, 1], last[:, 0] - first[:, 0], cross]))
        middles = self._turned(np.column_stack([first + last, np.full(len(self), 2.0)]))
        most = max(16, _MAX_ELEMENTS // (3 * len(self)))
        parts = [
            self._log_likelihood(axes[at : at + most], focals[at : at + most, None, None], normals, middles)
            for at in range(0, len(axes), most)
        ]
        return np.concatenate(parts)

    def _log_likelihood(self, axes: F64, focals: F64, normals: _Turned, middles: _Turned) -> F64:
        """Return the logarithm (B,) of the likelihood of axes (B, 3, 3) and focal lengths (B, 1, 1)."""
        # In place, because most of the time of a scene is spent here.
        off, along = _squares(normals, axes, 1 / focals), _squares(middles, axes, focals)
        np.maximum(np.subtract(1 - off, along, out=along), 1e-6, out=along)
        # The angle between a segment and its vanishing point, seen from the middle of the segment, has the sine
        # `off` and the cosine `along`, here as squares. It has the variance `variance / along`.
        variance = along * self.sigmas**2
        variance += _PLANE_SIGMA**2
        off /= variance
        np.maximum(np.multiply(off, -0.5, out=off), _MIN_EXPONENT, out=off)
        density = np.exp(off, out=off)
        along /= variance
        density *= np.sqrt(along, out=along)
        mixed = np.einsum("bal,a->bl", density, _SHARES) + _OTHER / np.pi
        share = min(_INDEPENDENT, _MAX_INDEPENDENT / len(self))
        return np.asarray(share * np.log(mixed).sum(axis=1))

    def _turned(self, vectors: F64) -> _Turned:
        """Rotate vectors (L, 3) of the frames to the axes of the path."""
        level = np.einsum("lij,lj->il", self.rotations[:, :, :2], vectors[:, :2])
        ahead = (self.rotations[:, :, 2] * vectors[:, 2:]).T
        return np.concatenate([level, ahead]), (vectors[:, :2] ** 2).sum(axis=1), vectors[:, 2] ** 2


def _squares(vectors: _Turned, axes: F64, factors: F64) -> F64:
    """Return the squared cosines (B, 3, L) of axes (B, 3, 3) and vectors whose z is scaled by factors (B, 1, 1)."""
    turned, level, ahead = vectors
    both = np.concatenate([axes, factors * axes], axis=2)
    squares = np.square((both.reshape(-1, 6) @ turned).reshape(len(axes), 3, -1))
    squares /= np.maximum(level + ahead * factors**2, 1e-24)
    return np.asarray(squares)


NO_LINES = LineEvidence(np.zeros((0, 2, 2)), np.zeros(0), np.zeros((0, 3, 3)))


def select_lines(
    found: Sequence[tuple[float, F32]], times: F64, begins: Sequence[float], moves: bool, camera: Camera
) -> tuple[FrameLines, ...]:
    """Return the lines of the frames that count, from line segments `found`: times in s and ends (L, 2, 2) px.

    `begins` are the starts of the scenes in s. A camera that does not move sees the same lines again and again.
    """
    chosen, coming = list[tuple[float, F32]](), list(reversed(_wanted_times(times, begins, moves)))
    for time, ends in found:
        if coming and time >= coming[-1] - 1e-6:
            same = [] if moves else [other for begin, other in chosen if begin >= max(b for b in begins if b <= time)]
            chosen.append((time, _new(ends, np.concatenate([ends[:0], *same]), _SAME * max(camera.size))))
        while coming and time >= coming[-1] - 1e-6:
            coming.pop()
    most = lines_per_frame(len(chosen))  # the longest ones come first
    return tuple(FrameLines.of(time, ends[:most], camera) for time, ends in chosen)


def lines_per_frame(frames: int) -> int:
    """Return the maximum number of lines of each of several frames."""
    return max(MAX_LINES // max(frames, 1), MIN_SEGMENTS)


def _new(ends: F32, known: F32, tolerance: float) -> F32:
    """Return the segments (L, 2, 2) px whose ends are further than `tolerance` from those of all known ones."""
    apart = np.abs(ends[:, None] - known).max(axis=(2, 3))
    return np.asarray(ends[(apart > tolerance).all(axis=1)])


def _wanted_times(times: F64, begins: Sequence[float], moves: bool) -> list[float]:
    """Return the times (s) at which lines count, for frames at `times` (F,) s."""
    ends = [*begins[1:], float(times[-1]) + 1e-3]
    if not moves:
        return [
            begin + later
            for begin, end in zip(begins, ends, strict=True)
            for later in STEADY_TIMES_S
            if begin + later < end
        ]
    most = max(1, _MOVING_FRAMES // len(begins))
    spans = zip(begins, ends, strict=True)
    return [
        begin + number * max(_MOVING_INTERVAL_S, (end - begin) / most)
        for begin, end in spans
        for number in range(max(1, min(most, math.ceil((end - begin) / _MOVING_INTERVAL_S))))
    ]


def evidence_from(
    lines: Sequence[FrameLines], begins: Sequence[float], scene: int, path: CameraPath | None
) -> LineEvidence:
    """Return the evidence of the lines of one scene; none if there are few."""
    own = [one for one in lines if int(scene_numbers(begins, np.array([one.time]))[0]) == scene]
    ends, rotations = [one.ends for one in own], [np.tile(np.eye(3), (len(one.ends), 1, 1)) for one in own]
    if path is not None:
        rows = path.rows(np.array([one.time for one in own]))
        usable = np.isfinite(path.sigmas[rows])
        own = [one for one, use in zip(own, usable, strict=True) if use]
        rows = rows[usable]
        ends = [one.ends / path.zooms[row] for one, row in zip(own, rows, strict=True)]
        rotations = [np.tile(path.rotations[row], (len(one.ends), 1, 1)) for one, row in zip(own, rows, strict=True)]
    if sum(map(len, ends)) < MIN_SEGMENTS:
        return NO_LINES
    return LineEvidence(np.concatenate(ends), np.concatenate([one.sigmas for one in own]), np.concatenate(rotations))


_SIDE_PX = 1280  # longer side of the image in which segments are found, at most
_MIN_LENGTH = 0.04  # minimum length of a segment relative to the longer side
_MAX_SEGMENTS = 60  # longest segments of a frame that are used
# Of them, at most 3 in one of 12 directions and one of 6 parts of the longer side of the image.
_MAX_PARALLEL, _DIRECTIONS, _CELLS = 3, 12, 6
_BORDER_PX = 3  # distance from the border of the image within which a segment is the border
STEADY_TIMES_S = (0.0, 1.0, 2.0)  # of the frames of a static camera, s from the start of a scene
# Later frames are at least 1 s and a twelfth of the scene apart, so that their number stays small in long videos.
_INTERVAL_S, _SHARE = 1.0, 12
_MIN_TURN = 0.01  # rad, rotation or logarithm of the zoom since the last frame with segments, in later frames


class SegmentFinder:
    """Choice of the frames in which segments are found: the start of each scene, and later ones if the camera turns."""

    def __init__(self, skeleton: Skeleton) -> None:
        """Start without frames."""
        self._skeleton = skeleton
        self._begin = self._next = -np.inf  # s, start of the scene, and time of the next frame with segments
        self._view: F64 | None = None  # (5,) key frame, rotation and zoom of the last measured frame
        self._seen: F64 | None = None  # the same, of the last frame with segments

    def step(self, image: U8, people: People, background: Background | None) -> F32 | None:
        """Return the segments (L, 2, 2) px of the next (H, W, 3) RGB frame; None if it is not needed."""
        time = people.time
        if people.cut or self._begin == -np.inf:
            self._begin = self._next = time
            self._view = self._seen = None
        if background is not None and background.links[0, 0] != NO_LINK:
            self._view = background.links[0, :5]
        steady = time - self._begin > STEADY_TIMES_S[-1] + _INTERVAL_S / 2 and not self._turned()
        if steady or time < self._next - 1e-6:
            return None
        self._next, self._seen = time + max(_INTERVAL_S, (time - self._begin) / _SHARE), self._view
        return find_segments(image, people, self._skeleton)

    def _turned(self) -> bool:
        if self._view is None or self._seen is None:
            return self._view is not self._seen
        return bool(self._view[0] != self._seen[0] or np.abs(self._view[1:] - self._seen[1:]).max() > _MIN_TURN)


def reduction(size: tuple[int, int]) -> float:
    """Return the factor by which an image of a size (width, height) px is reduced before segments are found."""
    return min(1.0, _SIDE_PX / max(size))


def find_segments(image: U8, people: People, skeleton: Skeleton) -> F32:
    """Return the ends (L, 2, 2) px of the longest line segments of an RGB image (H, W, 3) outside its people."""
    side, scale = max(image.shape[:2]), reduction((image.shape[1], image.shape[0]))
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    if scale < 1:
        grey = cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    found = cv2.createLineSegmentDetector().detect(grey)[0]
    ends = np.zeros((0, 2, 2)) if found is None else found.reshape(-1, 2, 2).astype(np.float64)
    mask = people_mask(grey.shape, scale, people, skeleton)
    lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=-1)
    height, width = grey.shape
    middles = ends.mean(axis=1).astype(int).clip(0, [width - 1, height - 1])
    inside = np.concatenate([ends, [width - 1, height - 1] - ends], axis=2)  # px from the four borders
    border = np.any(np.all(inside < _BORDER_PX, axis=1), axis=1)  # both ends at the same border of the image
    kept = (lengths > _MIN_LENGTH * scale * side) & (mask[middles[:, 1], middles[:, 0]] > 0) & ~border
    rows = _spread(ends, lengths, np.flatnonzero(kept), side * scale)
    return np.asarray((ends[rows] + 0.5) / scale - 0.5, np.float32)


def _spread(ends: F64, lengths: F64, rows: I64, side: float) -> I64:
    """Return the longest segments, but few parallel ones of one part of the image: slats err together."""
    ordered = rows[np.argsort(-lengths[rows], kind="stable")]
    ways = ends[ordered, 1] - ends[ordered, 0]
    turns = np.rint(np.arctan2(ways[:, 1], ways[:, 0]) / np.pi * _DIRECTIONS) % _DIRECTIONS
    cells = np.floor(ends[ordered].mean(axis=1) / side * _CELLS)
    seen: Counter[tuple[float, ...]] = Counter()
    chosen = []
    for row, cell in zip(ordered, np.column_stack([turns, cells]).tolist(), strict=True):
        seen[tuple(cell)] += 1
        if seen[tuple(cell)] <= _MAX_PARALLEL:
            chosen.append(row)
    return np.array(chosen[:_MAX_SEGMENTS], np.int64)
