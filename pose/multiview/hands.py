"""Hands of people in several cameras, triangulated where two of them see the hand.

Each camera's hand network gives 21 pixels and a 3D shape. A hand seen by two or more cameras is the point set that best
fits all pixels. The shapes are a weak prior, which matters where rays are nearly parallel. A hand seen by one camera
keeps the shape from that camera.

Axes: C cameras, K hands, P people. World: the frame of the first camera.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pose.multiview import residuals as r
from pose.multiview.sampling import MAX_GAP_S
from pose.multiview.types import RADIUS_68, ViewCamera
from pose.structures.hand_points import HAND_PER_FOREARM, POINTS, SIGMA, lengths, swapped_with_arms
from pose.structures.types import F32, F64, Flags, FrameResult

NOISE = 0.03  # standard deviation of a coordinate of a point with score 1, in hand lengths
WRIST_SIGMA = 0.03  # m, standard deviation per axis of the hand's wrist from the body's (docs/studies/hands.md)
CAUCHY = 2.0  # scale of the robust loss, in standard deviations
MAX_WRIST_DISTANCE = 1.0  # maximum distance of a hand's wrist from the projected wrist of the body, in hand lengths
MIN_CONTRADICTION = 0.15  # minimum median reprojection error of a camera that shows another hand, in hand lengths
STEPS = 4  # Gauss-Newton steps


@dataclass(frozen=True, slots=True)
class SeenHands:
    """Observations of K hands by all cameras at one instant."""

    pixels: F64  # (C, K, 21, 2) px
    scores: F64  # (C, K, 21); 0 where a point is not seen
    shapes: F64  # (C, K, 21, 3) m from the wrist, in the axes of each camera and the hand size that the network assumes

    @classmethod
    def none(cls, cameras: int, hands: int) -> "SeenHands":
        """Return observations in which no camera sees any of the hands."""
        shape = (cameras, hands, POINTS)
        return cls(np.zeros((*shape, 2)), np.zeros(shape), np.zeros((*shape, 3)))

    @property
    def seen(self) -> Flags:
        """Mask (C, K) of the hands that each camera sees."""
        return np.asarray((self.scores > 0).any(axis=-1))


@dataclass(frozen=True, slots=True)
class FusedHands:
    """K fused hands at one instant."""

    # Sigma is NaN for hands seen by fewer than two cameras, whose true size is unknown.

    shapes: F64  # (K, 21, 3) m from the wrist, world axes; 0 where no camera sees the hand
    sigma: F64  # (K, 21) mm, radius around each point that contains the true point, relative to the wrist


def fuse_hands(seen: SeenHands, cameras: Sequence[ViewCamera], wrists: F64, forearms: F64) -> FusedHands:
    """Triangulate K hands at one instant, given wrists (K, 3) m and forearms (K,) m of the bodies."""
    # Cameras that do not agree are left out. Hands that fewer than two cameras agree on keep the shape from the best
    # camera.
    seen = _assigned_to_wrists(seen, cameras, wrists, HAND_PER_FOREARM * forearms)
    sizes = np.stack([_size_px(camera, wrists, HAND_PER_FOREARM * forearms) for camera in cameras])
    used = seen.seen
    turned = np.stack([shape @ camera.rotation for shape, camera in zip(seen.shapes, cameras, strict=True)])
    best = np.argmax(used * seen.scores.max(axis=-1) * sizes, axis=0)
    known = np.asarray(used.any(axis=0))[:, None, None]
    shapes = np.where(known, turned[best, np.arange(len(best))], 0.0)
    sigma = np.full(shapes.shape[:2], np.nan)
    while (several := used.sum(axis=0) >= 2).any():
        points, spread = _triangulated(seen, used, turned, cameras, wrists, HAND_PER_FOREARM * forearms, sizes)
        off = _residuals(seen, used, cameras, points) / sizes
        agree = np.asarray(several & (off < MIN_CONTRADICTION).all(axis=0) & np.isfinite(points).all(axis=(1, 2)))
        shapes[agree] = (points - points[:, :1])[agree]
        sigma[agree] = spread[agree]
        used = used & ~agree  # repeat for the other hands without the camera that disagrees most
        worst = np.argmax(np.where(used, off, -1.0), axis=0)
        used[worst, np.arange(len(worst))] = False
    return FusedHands(shapes, sigma)


def _size_px(camera: ViewCamera, wrists: F64, metres: F64) -> F64:
    """Return the sizes (K,) px in the image of hands with lengths `metres` (K,) m."""
    size: F64 = camera.focal * metres / np.maximum(camera.to_camera(wrists)[:, 2], 0.1)
    return np.maximum(size, 1.0)


def _assigned_to_wrists(seen: SeenHands, cameras: Sequence[ViewCamera], wrists: F64, metres: F64) -> SeenHands:
    """Assign each hand to the closest wrist (in cameras that confuse the arms, swapped); drop distant ones."""
    pixels, scores, shapes = seen.pixels.copy(), seen.scores.copy(), seen.shapes.copy()
    is_seen = seen.seen
    for index, camera in enumerate(cameras):
        expected, size = camera.project(wrists), _size_px(camera, wrists, metres)
        for left in range(0, len(wrists), 2):
            rows, mirrored = [left, left + 1], [left + 1, left]
            apart = np.linalg.norm(expected[left] - expected[left + 1])
            as_seen, swapped = (
                sum(
                    float(np.linalg.norm(pixels[index, row, 0] - expected[wrist]))
                    for row, wrist in zip(rows, places, strict=True)
                    if is_seen[index, row]
                )
                for places in (rows, mirrored)
            )
            if swapped < as_seen - 0.5 * apart and apart > size[rows].mean():
                for values in (pixels, scores, shapes):
                    values[index, rows] = values[index, mirrored]
        away = np.linalg.norm(pixels[index, :, 0] - expected, axis=-1)
        scores[index, away > MAX_WRIST_DISTANCE * size] = 0
    return SeenHands(pixels, scores, shapes)


def _triangulated(
    seen: SeenHands, used: Flags, turned: F64, cameras: Sequence[ViewCamera], wrists: F64, metres: F64, sizes: F64
) -> tuple[F64, F64]:
    """Triangulate hands; return points (K, 21, 3) m in the world, and sigma (K, 21) mm relative to the wrist."""
    own = np.linalg.norm(np.diff(seen.shapes[:, :, [0, 9, 10, 11, 12]], axis=2), axis=-1).sum(axis=-1)
    factor = used * metres / np.where(own > 0, own, 1.0)
    shape = (factor[..., None, None] * turned).sum(axis=0) / np.maximum(used.sum(axis=0), 1)[:, None, None]
    start = points = wrists[:, None] + shape
    prior = 1 / (WRIST_SIGMA**2 + (metres[:, None] * SIGMA / RADIUS_68) ** 2)
    for _ in range(STEPS):
        matrix = prior[..., None, None] * np.eye(3)
        right = prior[..., None] * (start - points)
        for index, camera in enumerate(cameras):
            pixels, by_seen, _ = r.projected(camera, points)
            by_point = by_seen @ camera.rotation
            off = pixels - seen.pixels[index]
            precision = seen.scores[index] * used[index][:, None] / (NOISE * sizes[index][:, None]) ** 2
            weight = precision / (1 + (off**2).sum(axis=-1) * precision / CAUCHY**2)
            weighed = weight[..., None, None] * by_point
            matrix = matrix + np.swapaxes(weighed, -1, -2) @ by_point
            right = right - (off[..., None, :] @ weighed)[..., 0, :]
        points = points + np.linalg.solve(matrix, right[..., None])[..., 0]
    variance = np.trace(np.linalg.inv(matrix), axis1=-2, axis2=-1) / 3
    sigma = 1000 * RADIUS_68 * np.sqrt(variance + variance[:, :1])
    sigma[:, 0] = 0.0  # the wrist relative to itself
    return points, sigma


def _residuals(seen: SeenHands, used: Flags, cameras: Sequence[ViewCamera], points: F64) -> F64:
    """Return the median reprojection errors (C, K) px of hands; 0 for cameras that are not in `used`."""
    out = np.zeros(used.shape)
    for index, camera in enumerate(cameras):
        off = np.linalg.norm(camera.project(points) - seen.pixels[index], axis=-1)
        for row in np.flatnonzero(used[index]):
            out[index, row] = np.median(off[row][seen.scores[index, row] > 0])
    return out


class HandStream:
    """Fused hands of all people at increasing times, computed in one pass over the results of each camera."""

    def __init__(
        self,
        cameras: Sequence[ViewCamera],
        tracks: Sequence[Sequence[tuple[int, int]]],
        results: Sequence[Iterable[FrameResult]],
    ) -> None:
        """Start at the first result of each camera; `tracks` are (camera index, track id) of each person."""
        self._cameras = list(cameras)
        persons: list[dict[int, int]] = [{} for _ in cameras]
        for person, keys in enumerate(tracks):
            for camera, number in keys:
                persons[camera][number] = person
        self._neighbours = [
            _NeighbourFrames(camera_results, person_of_track)
            for camera_results, person_of_track in zip(results, persons, strict=True)
        ]

    def at(self, time: float, people: Sequence[int], wrists: F64, forearms: F64) -> tuple[F32, F32]:
        """Return shapes (P, 2, 21, 3) m and sigma (P, 2, 21) mm at a common time, which must not decrease."""
        count = len(people)
        seen = SeenHands.none(len(self._cameras), 2 * count)
        for index, (camera, neighbours) in enumerate(zip(self._cameras, self._neighbours, strict=True)):
            found = neighbours.at(float(camera.own_time(np.array([time]))[0]))
            for row, person in enumerate(people):
                if person in found:
                    rows = slice(2 * row, 2 * row + 2)
                    seen.pixels[index, rows], seen.scores[index, rows], seen.shapes[index, rows] = found[person]
        fused = fuse_hands(seen, self._cameras, wrists.reshape(-1, 3), np.repeat(forearms, 2))
        shapes = fused.shapes.reshape(count, 2, POINTS, 3).astype(np.float32)
        return shapes, fused.sigma.reshape(count, 2, POINTS).astype(np.float32)


_Hands = tuple[F32, F32, F32]  # pixels (2, 21, 2), scores (2, 21) and shapes (2, 21, 3) of one person


class _NeighbourFrames:
    """Hands of one camera by person, interpolated linearly between the frames before and after a time."""

    def __init__(self, results: Iterable[FrameResult], persons: Mapping[int, int]) -> None:
        self._frames = self._read(results, persons)
        self._before: tuple[float, dict[int, _Hands]] | None = None
        self._after = next(self._frames, None)

    @staticmethod
    def _read(results: Iterable[FrameResult], persons: Mapping[int, int]) -> Iterator[tuple[float, dict[int, _Hands]]]:
        for result in results:
            hands, found = result.people.hands, dict[int, _Hands]()
            if hands is not None and len(hands):
                turned = (
                    swapped_with_arms(values, result.poses.swapped)
                    for values in (hands.points, hands.scores, hands.shapes)
                )
                points, scores, shapes = turned
                scores = np.where((lengths(shapes) > 0)[..., None], scores, 0).astype(np.float32)
                for row, number in enumerate(result.people.ids.tolist()):
                    if number in persons:
                        found[persons[number]] = points[row], scores[row], shapes[row]
            yield result.time, found

    def at(self, time: float) -> Mapping[int, _Hands]:
        while self._after is not None and self._after[0] <= time:
            self._before, self._after = self._after, next(self._frames, None)
        before, after = self._before, self._after
        if before is not None and after is not None and after[0] - before[0] <= MAX_GAP_S:
            share = (time - before[0]) / (after[0] - before[0])
            people = before[1].keys() | after[1].keys()
            return {person: _between(before[1].get(person), after[1].get(person), share) for person in people}
        near = [one for one in (before, after) if one is not None and abs(one[0] - time) <= MAX_GAP_S / 2]
        return min(near, key=lambda one: abs(one[0] - time))[1] if near else {}


def _between(before: _Hands | None, after: _Hands | None, share: float) -> _Hands:
    """Interpolate a person's hands between frames; a hand seen in one of them is that of the nearer frame."""
    nearer, other = (before, after) if share < 0.5 else (after, before)
    if nearer is None:
        assert other is not None
        return other[0], np.zeros_like(other[1]), other[2]
    if before is None or after is None:
        return nearer
    in_both = np.asarray((before[1] > 0).any(axis=1) & (after[1] > 0).any(axis=1))[:, None]
    mixed = tuple(earlier + share * (later - earlier) for earlier, later in zip(before, after, strict=True))
    points = np.where(in_both[..., None], mixed[0], nearer[0])
    scores = np.where(in_both, np.minimum(before[1], after[1]), nearer[1])
    return points, scores, np.where(in_both[..., None], mixed[2], nearer[2])
