"""Whose body a pose shows: where it is, how large, and what colour the clothes are, against what was seen before."""

from dataclasses import dataclass
from math import dist, exp

import numpy as np
from numpy.typing import NDArray

from pose.skeletons import Skeleton
from pose.types import F32, U8

# People touch where the boxes around their joints overlap this much (IoU), so that one may hide the other.
TOUCHING = 0.1
VELOCITY_SECONDS = 0.2  # a person's velocity is a running average over about this time
SLOWING_SECONDS = 0.7  # a motion goes on for about so long
CLOTHES_SECONDS = 0.5  # and the colours of their clothes over this
SIZE_WEIGHT = 0.5  # sizes that differ by a factor of e weigh as much as a way of half a body
CLOTHES_WEIGHT = 0.5  # black for white, as much as a way of half a body
ACROSS = (0.3, 0.5, 0.7)  # where the trunk is sampled, from left to right
DOWN = (0.2, 0.5, 0.8)  # and from the shoulders to the hips
THIGH = (0.2, 0.4, 0.6)  # and a thigh from hip to knee
_ACROSS = np.array(ACROSS, np.float32)[:, None]
_DOWN, _THIGH = (np.array(parts, np.float32)[:, None, None] for parts in (DOWN, THIGH))


@dataclass(frozen=True, slots=True)
class Past:
    """A person as seen last. xy: (J, 2) px. seen: (J,). size: px, how long trunk and leg are. middle: (2,) px, of the
    trunk. velocity: (2,) px/s. clothes: (2, 3) the colours of trunk and thighs in [0, 1]. time: s.
    """

    xy: F32
    seen: NDArray[np.bool_]
    size: float
    middle: F32
    velocity: F32
    clothes: F32
    time: float

    def way(self, time: float) -> F32:
        """(2,) px: how far they have gone on at `time`, slowing down."""
        return self.velocity * np.float32(SLOWING_SECONDS * (1 - exp((self.time - time) / SLOWING_SECONDS)))

    def expected(self, time: float) -> F32:
        """(J, 2) px where the joints are at `time`, if the person moves on."""
        return self.xy + self.velocity * np.float32(time - self.time)


class Evidence:
    """Remembers people of one skeleton, and compares them with poses."""

    def __init__(self, skeleton: Skeleton) -> None:
        self._body = np.array(
            [
                [skeleton.index(f"{side}_{part}") for side in ("left", "right")]
                for part in ("shoulder", "hip", "knee", "ankle")
            ]
        )
        self._shoulders, self._hips, self._knees, _ = self._body
        self._trunk = self._body[:2].ravel()

    def clothes(self, image: U8, xy: F32) -> F32:
        """(2, 3) the median colours of trunk and thighs in [0, 1]."""
        shoulders, hips, knees, _ = xy[self._body]
        upper, lower = (side[0] + _ACROSS * (side[1] - side[0]) for side in (shoulders, hips))
        trunk = upper + _DOWN * (lower - upper)
        thighs = hips + _THIGH * (knees - hips)
        points = np.rint(np.concatenate([trunk.reshape(-1, 2), thighs.reshape(-1, 2)]))
        height, width = image.shape[:2]
        x, y = np.minimum(np.maximum(points, 0), (width - 1, height - 1)).astype(np.intp).T
        colours = image[y, x].astype(np.float32).T
        trunk_points = len(ACROSS) * len(DOWN)
        return np.stack([median(colours[:, :trunk_points]), median(colours[:, trunk_points:])]) / np.float32(255)

    def remember(self, past: Past | None, image: U8, xy: F32, scores: F32, time: float, learn: bool) -> Past:
        """What is known after a sighting. learn: the colours are this person's for sure, since nobody else is near."""
        size, middle = self.size(xy), self.middle(xy)
        if past is None:
            return Past(xy, scores > 0, size, middle, np.zeros(2, np.float32), self.clothes(image, xy), time)
        step = max(time - past.time, 1e-3)
        speed = (middle - past.middle) / np.float32(step)
        velocity = past.velocity + np.float32(min(1.0, step / VELOCITY_SECONDS)) * (speed - past.velocity)
        clothes = past.clothes
        if learn:
            clothes = clothes + np.float32(min(1.0, step / CLOTHES_SECONDS)) * (self.clothes(image, xy) - clothes)
        return Past(xy, scores > 0, size, middle, velocity, clothes, time)

    def size(self, xy: F32) -> float:
        """Of the body of a pose (J, 2) in px: trunk and the longer leg, along the bones; bending changes it little."""
        shoulders, hips, knees, ankles = xy[self._body].tolist()  # so few numbers cost NumPy ten times as much
        legs = (dist(hip, knee) + dist(knee, ankle) for hip, knee, ankle in zip(hips, knees, ankles, strict=True))
        trunk = dist(_between(*shoulders), _between(*hips))
        return max(trunk + max(legs), 1.0)

    def middle(self, xy: F32) -> F32:
        """(2,) px the middle of the trunk of a pose (J, 2)."""
        return np.asarray(np.add.reduce(xy[self._trunk]) / len(self._trunk))

    def distance(self, past: Past, image: U8, xy: F32, time: float) -> float:
        """How far a pose (J, 2) px is from being this person's, in body sizes."""
        way = float(median(lengths(xy - past.expected(time)))) / past.size
        return way + self.unlike(past, image, xy)

    def unlike(self, past: Past, image: U8, xy: F32) -> float:
        """How much a body differs from this person's in size and clothes."""
        grown = abs(float(np.log(self.size(xy) / past.size)))
        dressed = float(np.abs(self.clothes(image, xy) - past.clothes).mean())
        return SIZE_WEIGHT * grown + CLOTHES_WEIGHT * dressed


def lengths(vectors: F32) -> F32:
    """(...) of vectors (..., 2)."""
    return np.asarray(np.sqrt((vectors * vectors).sum(axis=-1)))


def _between(a: list[float], b: list[float]) -> tuple[float, float]:
    return (a[0] + b[0]) / 2, (a[1] + b[1]) / 2


def median(values: F32) -> F32:
    """(...) of (..., N). As NumPy's, which takes ten times as long for so few numbers."""
    ordered, count = np.sort(values, axis=-1), values.shape[-1]
    return np.asarray((ordered[..., (count - 1) // 2] + ordered[..., count // 2]) / 2)


def pairs(similar: F32, least: float) -> list[tuple[int, int]]:
    """Rows and columns of (P, Q) that belong together, the most similar first, each at most once."""
    found: list[tuple[int, int]] = []
    left = similar.copy()
    while left.size and left.max() > least:
        row, column = np.unravel_index(int(left.argmax()), left.shape)
        found.append((int(row), int(column)))
        left[row], left[:, column] = -1, -1
    return found
