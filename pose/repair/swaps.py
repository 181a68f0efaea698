"""Left and right exchanged, found over time: legs and arms each on their own, and the whole body for longer.

Half the difference between a left joint and its right twin, d = (left - right) / 2, changes its sign when a detector
exchanges the two, and nothing else about the pair changes. So a limb's swaps are the signs s(t) that let s(t) d(t) move
as bodies do. A Kalman filter with constant velocity says how likely each next s d is, and Viterbi's algorithm finds the
best signs, each of its two survivors with a filter of its own (per-survivor processing: Raheli, Polydoros and Tzou,
IEEE Transactions on Communications, 1995). Where left and right meet d is 0: then no sign is better, and none matters.

A limb by itself says little, so its exchange is short: what lasts is a turn that nobody saw. Where a front was taken
for a back the whole body changes sides between two frames, and some seconds later once more; no turn does that, for
a body that turns shows its side. So all pairs together bear seconds, if both ends are seen.

Axis legend: S survivor (0: as seen, 1: exchanged), G limb, K pair of a limb, XY 2.
"""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pose.skeletons import Skeleton
from pose.stages import LONGEST_GAP_SECONDS
from pose.types import F32

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

LIMBS: dict[str, tuple[str, ...]] = {
    "legs": ("hip", "knee", "ankle", "heel", "big_toe", "small_toe", "foot_index"),
    "arms": ("shoulder", "elbow", "wrist", "pinky", "index", "thumb"),
}
BODY = ("hip", "knee", "ankle", "shoulder", "elbow", "wrist")

# Lengths are shares of the person's size in the picture.
MEASUREMENT = 0.01  # standard deviation of d where the score is 1; it grows as the score falls
ACCELERATION = 2.0  # spectral density of the white acceleration, size^2 / s^3
VELOCITY = 0.5  # standard deviation of d's velocity when a person appears, 1 / s
SPREAD = 0.15  # standard deviation of d when a person appears
FARTHEST = 8.0  # nats that one pair in one frame can say at most: it may be an outlier
END_SECONDS = 0.07  # of frames before and of those after the end of an exchange, that must show it
SETTLED_SECONDS = 1.0  # that a person must be seen before it and after it
APART = 0.02  # root mean square of d there, at least
OPPOSITE = 0.2  # least correlation of d before with -d after
SIZE_SECONDS = 1.0  # the person's size is a running average over about this time
SIGNS = np.array([1.0, -1.0])


@dataclass(frozen=True, slots=True)
class Rules:
    """How readily exchanges are believed. flip: nats that one costs, and again its end. swapped: nats for each second
    that it lasts. longest: s; what seems exchanged for longer is not: the person has turned, unseen. shortest: s;
    what lasts for less is not told. ends: whether both ends must be seen, `SETTLED_SECONDS` from the person's first and
    last frame, too.
    """

    flip: float
    swapped: float
    longest: float
    shortest: float = 0.0
    ends: bool = False


LIMB_RULES = Rules(flip=3.0, swapped=16.0, longest=1.0)
BODY_RULES = Rules(flip=15.0, swapped=2.0, longest=5.0, shortest=LIMB_RULES.longest, ends=True)


def limb_pairs(skeleton: Skeleton) -> dict[str, NDArray[np.int64]]:
    """(K, 2) indices of the left and the right joint of each pair of each limb."""
    return {limb: _pairs(skeleton, parts) for limb, parts in LIMBS.items()}


def body_pairs(skeleton: Skeleton) -> NDArray[np.int64]:
    """(6, 2) the same of the joints that every skeleton has: hands and feet would count what wrists and ankles say."""
    return _pairs(skeleton, BODY)


def _pairs(skeleton: Skeleton, parts: tuple[str, ...]) -> NDArray[np.int64]:
    known = [part for part in parts if f"left_{part}" in skeleton.names]
    return np.array([[skeleton.index(f"{side}_{part}") for side in ("left", "right")] for part in known])


class _Sight(NamedTuple):
    """A frame of one person: s, d (G, K, 2), whether a pair is seen (G, K), and for S, G the predecessor."""

    time: float
    half: F64
    seen: Mask
    predecessors: NDArray[np.int64]


class SwapFinder:
    """Says frame by frame which limbs of one person are exchanged, `lookahead` seconds late."""

    def __init__(self, limbs: list[NDArray[np.int64]], rules: Rules, lookahead: float) -> None:
        """limbs: (K, 2) each, the pairs that change places together. lookahead: s; 0 decides at once, inf only at the
        end.
        """
        self._rules = rules
        widest = max(map(len, limbs))
        self._pairs = np.stack([np.pad(pairs, ((0, widest - len(pairs)), (0, 0)), mode="edge") for pairs in limbs])
        self._real = np.array([[k < len(pairs) for k in range(widest)] for pairs in limbs])
        self._lookahead = lookahead
        self._waiting: deque[_Sight] = deque()
        self._path: deque[Mask] = deque()  # (G,) for those of them that were there when it was traced last
        self._past: deque[_Sight] = deque()  # the decided ones of the last moment
        shape = (2, *self._real.shape, 2)
        self._position, self._velocity = np.zeros(shape), np.zeros(shape)
        self._covariance = np.zeros((3, *self._real.shape))  # of position, both, velocity
        self._last_seen = np.full(self._real.shape, -np.inf)
        self._cost = np.array([[0.0], [rules.flip]]).repeat(len(limbs), axis=1)
        self._since = np.full(len(limbs), np.inf)  # when the exchanged survivor's exchange began
        self._decided_since = np.full(len(limbs), np.inf)  # the same of the path, up to the newest decided frame
        self._clear = np.full(len(limbs), True)  # whether both ends of that exchange can be seen
        self._size = 1.0  # px
        self._sized = -np.inf  # when it was measured last
        self._time = -np.inf

    def push(self, keypoints: F32, scores: F32, time: float) -> None:
        """Take the next frame: (J, 2) px, (J,), 0 where not seen, and s."""
        step = min(time - self._time, LONGEST_GAP_SECONDS)
        self._time = time
        self._measure_size(keypoints, scores, time)
        left, right = np.moveaxis(self._pairs, -1, 0)
        score = np.minimum(scores[left], scores[right]) * self._real
        half = np.where(score[..., None] > 0, (keypoints[left] - keypoints[right]) / (2 * self._size), 0.0)
        self._predict(time, step)
        predecessors = self._update(half, score, step)
        self._since = np.where(predecessors[1] == 1, self._since, time)
        self._turn(predecessors)
        self._waiting.append(_Sight(time, half, score > 0, predecessors))
        self._last_seen[score > 0] = time

    def take(self, now: float) -> list[Mask]:
        """(G,) for each frame that is decided at `now` (s; inf: nothing follows), oldest first."""
        if np.isposinf(now):
            self._cost[1] += self._rules.flip
            return self._decide(len(self._waiting))
        due = 0
        while due < len(self._waiting) and self._waiting[due].time <= now - self._lookahead:
            due += 1
        return self._decide(due) if due else []

    def _measure_size(self, keypoints: F32, scores: F32, time: float) -> None:
        """Frames in which nobody is seen say nothing; after a long time without any the size is measured anew."""
        seen = keypoints[scores > 0]
        if len(seen):
            size = max(float(np.ptp(seen, axis=0).max()), 1.0)
            self._size += (size - self._size) * min((time - self._sized) / SIZE_SECONDS, 1.0)
            self._sized = time

    def _predict(self, time: float, step: float) -> None:
        """Let every pair move on for `step` seconds; one that was away for long is anywhere."""
        self._position += step * self._velocity
        pp, pv, vv = self._covariance
        pp += 2 * step * pv + step**2 * vv + ACCELERATION * step**3 / 3
        pv += step * vv + ACCELERATION * step**2 / 2
        vv += ACCELERATION * step
        lost = time - self._last_seen > LONGEST_GAP_SECONDS
        self._position[:, lost] = self._velocity[:, lost] = 0
        self._covariance[:, lost] = np.array([SPREAD**2, 0.0, VELOCITY**2])[:, None]

    def _update(self, half: F64, score: F64, step: float) -> NDArray[np.int64]:
        """Take d (G, K, 2) in. Returns for S, G which survivor each of the new ones continues."""
        seen = score > 0
        noise = (MEASUREMENT / np.maximum(score, 0.1)) ** 2
        pp, pv, vv = self._covariance
        variance = pp + noise
        # Axes: survivor that is continued, sign of this frame, G, K, XY.
        error = SIGNS[:, None, None, None] * half - self._position[:, None]
        farness = (error**2).sum(axis=-1) / variance
        evidence = (np.minimum(farness / 2, FARTHEST) * seen).sum(axis=-1)
        change = self._rules.flip * (1 - np.eye(2)) + self._rules.swapped * step * np.array([0.0, 1.0])
        total = self._cost[:, None] + evidence + change[..., None]
        predecessors = total.argmin(axis=0)
        self._cost = np.take_along_axis(total, predecessors[None], axis=0)[0]
        self._cost -= self._cost.min(axis=0)
        limbs = np.arange(len(half))
        chosen = error[predecessors, np.arange(2)[:, None], limbs]  # (S, G, K, XY)
        far = np.take_along_axis(farness.reshape(2, 2, *seen.shape), predecessors[None, :, :, None], axis=0)[0]
        trust = np.where(seen, np.minimum(1, np.sqrt(2 * FARTHEST / np.maximum(far, 1e-9))), 0.0)[..., None]
        gain_p, gain_v = (pp / variance)[..., None], (pv / variance)[..., None]
        self._position = self._position[predecessors, limbs] + trust * gain_p * chosen
        self._velocity = self._velocity[predecessors, limbs] + trust * gain_v * chosen
        kept = np.where(seen, noise / variance, 1.0)
        self._covariance = np.stack([pp * kept, pv * kept, vv - np.where(seen, pv**2 / variance, 0.0)])
        return predecessors

    def _turn(self, predecessors: NDArray[np.int64]) -> None:
        """Where the likeliest exchange has lasted for too long, take it for how the person is, from this frame on."""
        turned = (self._cost[1] < self._cost[0]) & (self._time - self._since > self._rules.longest)
        for array in (self._position, self._velocity, self._cost, predecessors):
            array[:, turned] = array[::-1, turned]
        self._position[:, turned] *= -1
        self._velocity[:, turned] *= -1
        self._since[turned] = self._time

    def _decide(self, count: int) -> list[Mask]:
        """The best path's answers for the `count` oldest frames that wait, without what lasts for too long."""
        self._trace()
        path = np.array(self._path)
        times = np.array([sight.time for sight in self._waiting])
        sights = [*self._past, *self._waiting]
        first = len(self._past)
        decided = []
        for row in range(count):
            begins = path[row] & np.isposinf(self._decided_since)
            self._decided_since = np.where(path[row], np.minimum(self._decided_since, times[row]), np.inf)
            lasting = path[row:].all(axis=0)
            ends = np.where(lasting, len(path) - 1, row + path[row:].argmin(axis=0))  # the frame after the exchange
            for limb in np.flatnonzero(begins) if self._rules.ends else ():
                both = (row, int(ends[limb]))
                lasts = times[ends[limb]] - times[row] >= self._rules.shortest
                self._clear[limb] = lasts and all(_changes_sides(sights, first + end, int(limb)) for end in both)
            decided.append(path[row] & (times[ends] - self._decided_since <= self._rules.longest) & self._clear)
            self._past.append(self._waiting.popleft())
            self._path.popleft()
        while self._past and self._past[0].time < self._past[-1].time - LONGEST_GAP_SECONDS:
            self._past.popleft()
        return decided

    def _trace(self) -> None:
        """The best path through the frames that wait; where it meets that of the last time the rest is the same."""
        self._path.extend([np.zeros(0, bool)] * (len(self._waiting) - len(self._path)))
        state = self._cost.argmin(axis=0)
        limbs = np.arange(len(state))
        for row in reversed(range(len(self._path))):
            if np.array_equal(self._path[row], state == 1):
                return
            self._path[row] = state == 1
            state = self._waiting[row].predecessors[state, limbs]


def _changes_sides(sights: list[_Sight], row: int, limb: int) -> bool:
    """Whether left and right are apart just before and from frame `row` on, and the other way round."""
    if row == 0 or sights[row].time - sights[row - 1].time > LONGEST_GAP_SECONDS:
        return False
    if sights[row].time - SETTLED_SECONDS < sights[0].time or sights[row].time + SETTLED_SECONDS > sights[-1].time:
        return False
    before = [s for s in sights[:row] if s.time >= sights[row - 1].time - END_SECONDS]
    after = [s for s in sights[row:] if s.time <= sights[row].time + END_SECONDS]
    apart = []
    for side in (before, after):
        half = np.array([np.where(s.seen[limb, :, None], s.half[limb], np.nan) for s in side])
        apart.append(np.nan_to_num(_median(half)))
    shared = np.any(apart[0], axis=-1) & np.any(apart[1], axis=-1)
    was, becomes = (pair[shared] for pair in apart)
    size = (was**2).sum() + (becomes**2).sum()
    return bool(size > 2 * shared.sum() * APART**2 and -2 * (was * becomes).sum() > OPPOSITE * size)


def _median(half: F64) -> F64:
    """(K, 2) of (T, K, 2), NaN where nothing is seen."""
    some = ~np.isnan(half).all(axis=0)
    found = np.full(half.shape[1:], np.nan)
    found[some] = np.nanmedian(half[:, some], axis=0)
    return found
