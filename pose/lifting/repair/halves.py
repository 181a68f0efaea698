"""Kalman filters of half the difference of a left and a right joint, d = (left - right) / 2.

In a left-right swap, d changes its sign, and nothing else about the pair changes. A Kalman filter with decaying
velocity (an Ornstein-Uhlenbeck process) gives the likelihood of each next d, and of -d. Each pair has two filters, one
for each survivor path of the Viterbi algorithm in `pose.lifting.repair.swaps`.

Axes: S survivor (0: as observed, 1: swapped), K pairs of all limbs concatenated, XY 2, G limb, J joint.
"""

import math

import numpy as np
from numpy.typing import NDArray

from pose.structures.defaults import MAX_TRACK_GAP_S
from pose.structures.types import F32, F64, Flags

Predecessors = tuple[int, int]  # the old survivors of a limb that its new survivors 0 and 1 continue

# Lengths are relative to the size of the person in the image.
MEASUREMENT_SIGMA = 0.01  # standard deviation of d at score 1; it is larger at lower scores
ACCELERATION = 2.0  # spectral density of the white-noise acceleration, size^2 / s^3
VELOCITY_DECAY_S = 0.15  # time constant with which the velocity decays, because limbs oscillate
VELOCITY_SIGMA = 0.5  # initial standard deviation of the velocity of d, 1 / s
POSITION_SIGMA = 0.15  # initial standard deviation of d
MAX_EVIDENCE_NATS = 8.0  # maximum evidence of one pair in one frame, because it may be an outlier
SIZE_FILTER_S = 1.0  # time constant of the filter of the person's size
SIGNS = np.array([1.0, -1.0])[:, None, None]


class HalfFilters:
    """Kalman filters of d = (left - right) / 2 for the K joint pairs of one person."""

    # The search for swaps keeps two hypotheses for each limb, the survivors 0 and 1: in the newest frame, the limb is
    # as observed, or swapped. For each frame call `update`, then `continue_survivors`, then `swap_survivors` if
    # necessary.

    def __init__(self, limbs: list[NDArray[np.int64]]) -> None:
        """Create the filters for limbs of joint pairs (pairs, 2), left and right, that swap together."""
        self._left, self._right = np.concatenate(limbs).T
        self._limb = np.repeat(np.arange(len(limbs)), [len(pairs) for pairs in limbs])  # (K,) limb of each pair
        self._first = np.flatnonzero(np.diff(self._limb, prepend=-1))  # first pair of each limb
        pairs = len(self._limb)
        self._motion = np.zeros((2, 2, pairs, 2))  # (2, S, K, XY): position and velocity of d
        self._covariance = np.zeros((3, 2, pairs))  # (3, S, K): variance of position, covariance, variance of velocity
        self._last_seen = np.full(pairs, -np.inf)
        self._size = 1.0  # px, size of the person
        self._size_time = -np.inf  # s, time of the last measurement of the size
        self.half = np.zeros((pairs, 2))  # (K, 2) x and y of d in the newest frame, relative to the person's size
        self.seen = np.zeros(pairs, bool)  # (K,) whether both joints of a pair are detected in the newest frame
        self._noise = np.zeros(pairs)  # variance of `half`

    def pairs_of(self, limb: int) -> Flags:
        """Return (K,) whether each of the K joint pairs belongs to the limb with index `limb`."""
        return np.asarray(self._limb == limb)

    def update(self, keypoints: F32, scores: F32, time: float, step: float) -> F64:
        """Process the next frame; return costs (limbs, survivor, as observed or swapped) in nats."""
        self._measure_size(keypoints, scores, time)
        self._predict(time, step)
        score = np.minimum(scores[self._left], scores[self._right])
        self.seen = score > 0
        difference = keypoints[self._left] - keypoints[self._right]
        self.half = np.where(self.seen[:, None], difference / (2 * self._size), 0.0)
        self._noise = (MEASUREMENT_SIGMA / np.maximum(score, 0.1)) ** 2
        self._last_seen[self.seen] = time
        error = SIGNS * self.half - self._motion[0, :, None]  # (S, sign, K, XY)
        variance = (self._covariance[0] + self._noise)[:, None]
        nats = np.minimum((error**2).sum(axis=-1) / variance / 2, MAX_EVIDENCE_NATS) + np.log(variance)
        return np.add.reduceat(nats * self.seen, self._first, axis=-1).transpose(2, 0, 1)

    def continue_survivors(self, predecessors: list[Predecessors]) -> None:
        """Choose the previous survivors to continue, and update filters: d for survivor 0, -d for 1 (swapped)."""
        continued = np.array(predecessors).T[:, self._limb], np.arange(len(self._limb))
        self._motion, self._covariance = self._motion[:, *continued], self._covariance[:, *continued]  # copies
        position, velocity = self._motion
        pp, pv, vv = self._covariance
        error = SIGNS * self.half - position
        variance = pp + self._noise
        far = (error**2).sum(axis=-1) / variance
        # Limit the effect of outliers on state and variance.
        trust = np.minimum(1, np.sqrt(2 * MAX_EVIDENCE_NATS / np.maximum(far, 1e-9))) * self.seen
        gain_p, gain_v = trust * pp / variance, trust * pv / variance
        position += gain_p[..., None] * error
        velocity += gain_v[..., None] * error
        vv -= gain_v * pv
        pv -= gain_p * pv
        pp -= gain_p * pp

    def swap_survivors(self, limb: int) -> None:
        """Swap the two survivors of a limb: the sides that counted as swapped are correct from now on."""
        pairs = self.pairs_of(limb)
        self._motion[:, :, pairs] = -self._motion[:, ::-1, pairs]
        self._covariance[:, :, pairs] = self._covariance[:, ::-1, pairs]

    def _measure_size(self, keypoints: F32, scores: F32, time: float) -> None:
        """Update the person's size unless no keypoints are seen; after a long gap it is measured again."""
        seen = keypoints[scores > 0]
        if len(seen):
            size = max(float((seen.max(axis=0) - seen.min(axis=0)).max()), 1.0)
            self._size += (size - self._size) * min((time - self._size_time) / SIZE_FILTER_S, 1.0)
            self._size_time = time

    def _predict(self, time: float, step: float) -> None:
        """Predict all filters by `step` seconds. After a long gap they start again."""
        decay = math.exp(-step / VELOCITY_DECAY_S)  # share of the velocity that is left
        travel_time = VELOCITY_DECAY_S * (1 - decay)
        position, velocity = self._motion
        position += travel_time * velocity
        velocity *= decay
        pp, pv, vv = self._covariance
        pp += 2 * travel_time * pv + travel_time**2 * vv
        pp += ACCELERATION * VELOCITY_DECAY_S**2 * (step - 2 * travel_time + VELOCITY_DECAY_S * (1 - decay**2) / 2)
        pv += travel_time * vv
        pv *= decay
        pv += ACCELERATION * travel_time**2 / 2
        vv *= decay**2
        vv += ACCELERATION * VELOCITY_DECAY_S * (1 - decay**2) / 2
        lost = time - self._last_seen > MAX_TRACK_GAP_S
        if lost.any():
            self._motion[:, :, lost] = 0
            self._covariance[:, :, lost] = np.array([POSITION_SIGMA**2, 0.0, VELOCITY_SIGMA**2])[:, None, None]
