"""Position, velocity, body size and clothing colours of a tracked person, and how well a pose matches them."""

from dataclasses import dataclass
from math import dist, exp

import numpy as np
from numpy.typing import NDArray

from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, U8

MIN_TOUCHING_IOU = 0.1  # IoU of the boxes around the joints, above which people touch and can occlude each other
VELOCITY_TIME_CONSTANT_S = 0.2  # time constant of the running mean of the velocity
DECAY_TIME_CONSTANT_S = 0.7  # time constant with which the velocity of a lost person decays
COLOUR_TIME_CONSTANT_S = 0.5  # time constant of the running mean of the clothing colours
SIZE_WEIGHT = 0.5  # distance in body sizes for sizes that differ by a factor of e
COLOUR_WEIGHT = 0.5  # distance in body sizes for black instead of white clothes
# Positions at which clothing colours are sampled, as fractions of a distance:
ACROSS_FRACTIONS = (0.3, 0.5, 0.7)  # trunk, from left to right
DOWN_FRACTIONS = (0.2, 0.5, 0.8)  # trunk, from the shoulders to the hips
THIGH_FRACTIONS = (0.2, 0.4, 0.6)  # thigh, from hip to knee
_ACROSS = np.array(ACROSS_FRACTIONS, np.float32)[:, None]
_DOWN, _THIGH = (np.array(parts, np.float32)[:, None, None] for parts in (DOWN_FRACTIONS, THIGH_FRACTIONS))


@dataclass(frozen=True, slots=True)
class PersonState:
    """State of a person at the last frame with a pose."""

    xy: F32  # (J, 2) positions of the joints, px
    visible: NDArray[np.bool_]  # (J,) whether the joint has a score above 0
    size: float  # body size: length of the trunk plus the longer leg, px
    trunk_centre: F32  # (2,) mean position of shoulders and hips, px
    velocity: F32  # (2,) velocity of the trunk centre, px/s
    colours: F32  # (2, 3) RGB colours of trunk and thighs in [0, 1]
    time: float  # time of that frame, s

    def displacement(self, time: float) -> F32:
        """Return the displacement (2,) px to the position predicted at `time` (s) with decaying velocity."""
        return self.velocity * np.float32(DECAY_TIME_CONSTANT_S * (1 - exp((self.time - time) / DECAY_TIME_CONSTANT_S)))

    def predicted_xy(self, time: float) -> F32:
        """Return the joints (J, 2) px predicted at `time` (s) with constant velocity."""
        return self.xy + self.velocity * np.float32(time - self.time)


class PersonModel:
    """Methods that update a `PersonState` (position, velocity, size, colours) and compare it with new poses."""

    def __init__(self, skeleton: Skeleton) -> None:
        self._body = np.array(
            [
                [skeleton.index(f"{side}_{part}") for side in ("left", "right")]
                for part in ("shoulder", "hip", "knee", "ankle")
            ]
        )
        self._shoulders, self._hips, self._knees, _ = self._body
        self._trunk = self._body[:2].ravel()

    def clothing_colours(self, image: U8, xy: F32) -> F32:
        """Return the median RGB colours (2, 3) of trunk and thighs in [0, 1], with joints (J, 2) px."""
        shoulders, hips, knees, _ = xy[self._body]
        upper, lower = (side[0] + _ACROSS * (side[1] - side[0]) for side in (shoulders, hips))
        trunk = upper + _DOWN * (lower - upper)
        thighs = hips + _THIGH * (knees - hips)
        points = np.rint(np.concatenate([trunk.reshape(-1, 2), thighs.reshape(-1, 2)]))
        height, width = image.shape[:2]
        x, y = np.minimum(np.maximum(points, 0), (width - 1, height - 1)).astype(np.intp).T
        colours = image[y, x].astype(np.float32).T
        trunk_points = len(ACROSS_FRACTIONS) * len(DOWN_FRACTIONS)
        return np.stack([median(colours[:, :trunk_points]), median(colours[:, trunk_points:])]) / np.float32(255)

    def update(
        self, state: PersonState | None, image: U8, xy: F32, scores: F32, time: float, learn_colours: bool
    ) -> PersonState:
        """Return the state of a person after a new pose."""
        # `learn_colours` is False near other people, whose clothes may be sampled instead.
        size, centre = self.body_size(xy), self.trunk_centre(xy)
        if state is None:
            colours = self.clothing_colours(image, xy)
            return PersonState(xy, scores > 0, size, centre, np.zeros(2, np.float32), colours, time)
        step = max(time - state.time, 1e-3)
        speed = (centre - state.trunk_centre) / np.float32(step)
        velocity = state.velocity + np.float32(min(1.0, step / VELOCITY_TIME_CONSTANT_S)) * (speed - state.velocity)
        colours = state.colours
        if learn_colours:
            weight = np.float32(min(1.0, step / COLOUR_TIME_CONSTANT_S))
            colours = colours + weight * (self.clothing_colours(image, xy) - colours)
        return PersonState(xy, scores > 0, size, centre, velocity, colours, time)

    def body_size(self, xy: F32) -> float:
        """Return the length in px of trunk and longer leg along the bones of a pose (J, 2), nearly posture-free."""
        shoulders, hips, knees, ankles = xy[self._body].tolist()  # ten times as fast as NumPy for so few numbers
        legs = (dist(hip, knee) + dist(knee, ankle) for hip, knee, ankle in zip(hips, knees, ankles, strict=True))
        trunk = dist(_midpoint(*shoulders), _midpoint(*hips))
        return max(trunk + max(legs), 1.0)

    def trunk_centre(self, xy: F32) -> F32:
        """Return the mean (2,) px of the shoulders and hips of a pose (J, 2)."""
        return np.asarray(np.add.reduce(xy[self._trunk]) / len(self._trunk))

    def distance(self, state: PersonState, image: U8, xy: F32, time: float) -> float:
        """Return how much a pose differs from a person's predicted pose and appearance, in body sizes."""
        offset = float(median(lengths(xy - state.predicted_xy(time)))) / state.size
        return offset + self.appearance_distance(state, image, xy)

    def appearance_distance(self, state: PersonState, image: U8, xy: F32) -> float:
        """Return how much a pose differs from a person in appearance: weighted changes of body size and colours."""
        size_change = abs(float(np.log(self.body_size(xy) / state.size)))
        colour_change = float(np.abs(self.clothing_colours(image, xy) - state.colours).mean())
        return SIZE_WEIGHT * size_change + COLOUR_WEIGHT * colour_change


def lengths(vectors: F32) -> F32:
    """Return the Euclidean lengths (...) of vectors (..., 2)."""
    return np.asarray(np.sqrt((vectors * vectors).sum(axis=-1)))


def _midpoint(a: list[float], b: list[float]) -> tuple[float, float]:
    return (a[0] + b[0]) / 2, (a[1] + b[1]) / 2


def median(values: F32) -> F32:
    """Return the medians (...) of values (..., N). For small N, this is ten times as fast as NumPy."""
    ordered, count = np.sort(values, axis=-1), values.shape[-1]
    return np.asarray((ordered[..., (count - 1) // 2] + ordered[..., count // 2]) / 2)


def greedy_pairs(similarity: F32, min_similarity: float) -> list[tuple[int, int]]:
    """Assign rows to columns of (P, Q) greedily, the most similar pair above `min_similarity` first."""
    pairs: list[tuple[int, int]] = []
    remaining = similarity.copy()
    while remaining.size and remaining.max() > min_similarity:
        row, column = np.unravel_index(int(remaining.argmax()), remaining.shape)
        pairs.append((int(row), int(column)))
        remaining[row], remaining[:, column] = -1, -1
    return pairs
