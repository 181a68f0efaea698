"""Whose body a pose shows: where it is, how large, and what colour the clothes are, against what was seen before."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.skeletons import Skeleton
from pose.types import F32, U8

VELOCITY_SECONDS = 0.2  # a person's velocity is a running average over about this time
CLOTHES_SECONDS = 0.5  # and the colours of their clothes over this
SIZE_WEIGHT = 0.5  # sizes that differ by a factor of e weigh as much as a way of half a body
CLOTHES_WEIGHT = 0.5  # black for white, as much as a way of half a body
ACROSS = (0.3, 0.5, 0.7)  # where the trunk is sampled, from left to right
DOWN = (0.2, 0.5, 0.8)  # and from the shoulders to the hips
THIGH = (0.2, 0.4, 0.6)  # and a thigh from hip to knee


@dataclass(frozen=True, slots=True)
class Past:
    """A person as seen last. xy: (J, 2) px. seen: (J,). size: px, how long trunk and leg are. velocity: (2,) px/s.
    clothes: (2, 3) the colours of trunk and thighs in [0, 1]. time: s.
    """

    xy: F32
    seen: NDArray[np.bool_]
    size: float
    velocity: F32
    clothes: F32
    time: float

    def expected(self, time: float) -> F32:
        """(J, 2) px where the joints are at `time`, if the person moves on."""
        return self.xy + self.velocity * np.float32(time - self.time)


class Evidence:
    """Remembers people of one skeleton, and compares them with poses."""

    def __init__(self, skeleton: Skeleton) -> None:
        self._shoulders, self._hips, self._knees, self._ankles = (
            [skeleton.index(f"{side}_{part}") for side in ("left", "right")]
            for part in ("shoulder", "hip", "knee", "ankle")
        )

    def clothes(self, image: U8, xy: F32) -> F32:
        """(2, 3) the median colours of trunk and thighs in [0, 1]."""
        across = np.array(ACROSS, np.float32)[:, None]
        upper, lower = (xy[a] + across * (xy[b] - xy[a]) for a, b in (self._shoulders, self._hips))
        trunk = np.concatenate([upper + np.float32(down) * (lower - upper) for down in DOWN])
        thighs = np.concatenate([xy[self._hips] + np.float32(t) * (xy[self._knees] - xy[self._hips]) for t in THIGH])
        limit = np.array(image.shape[1::-1]) - 1
        colours = []
        for points in (trunk, thighs):
            x, y = np.clip(np.rint(points), 0, limit).astype(np.intp).T
            colours.append(median(image[y, x].astype(np.float32).T))
        return (np.array(colours) / 255).astype(np.float32)

    def remember(self, past: Past | None, image: U8, xy: F32, scores: F32, time: float, learn: bool) -> Past:
        """What is known after a sighting. learn: the colours are this person's for sure, since nobody else is near."""
        size = self.size(xy)
        if past is None:
            return Past(xy, scores > 0, size, np.zeros(2, np.float32), self.clothes(image, xy), time)
        step = max(time - past.time, 1e-3)
        speed = (self.middle(xy) - self.middle(past.xy)) / np.float32(step)
        velocity = past.velocity + np.float32(min(1.0, step / VELOCITY_SECONDS)) * (speed - past.velocity)
        clothes = past.clothes
        if learn:
            clothes = clothes + np.float32(min(1.0, step / CLOTHES_SECONDS)) * (self.clothes(image, xy) - clothes)
        return Past(xy, scores > 0, size, velocity, clothes, time)

    def size(self, xy: F32) -> float:
        """Of the body of a pose (J, 2) in px: trunk and the longer leg, along the bones; bending changes it little."""
        legs = np.linalg.norm(xy[self._knees] - xy[self._hips], axis=1)
        legs += np.linalg.norm(xy[self._ankles] - xy[self._knees], axis=1)
        trunk = np.linalg.norm(xy[self._shoulders].mean(axis=0) - xy[self._hips].mean(axis=0))
        return max(float(trunk + legs.max()), 1.0)

    def middle(self, xy: F32) -> F32:
        """(2,) px the middle of the trunk of a pose (J, 2)."""
        return np.asarray(xy[self._shoulders + self._hips].mean(axis=0))

    def distance(self, past: Past, image: U8, xy: F32, time: float) -> float:
        """How far a pose (J, 2) px is from being this person's, in body sizes."""
        way = float(median(np.linalg.norm(xy - past.expected(time), axis=1))) / past.size
        return way + self.unlike(past, image, xy)

    def unlike(self, past: Past, image: U8, xy: F32) -> float:
        """How much a body differs from this person's in size and clothes."""
        grown = abs(float(np.log(self.size(xy) / past.size)))
        dressed = float(np.abs(self.clothes(image, xy) - past.clothes).mean())
        return SIZE_WEIGHT * grown + CLOTHES_WEIGHT * dressed


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
