"""The search for swapped limbs as it is defined: pair by pair, every survivor with the whole of its path."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from pose.lifting.repair.halves import (
    ACCELERATION,
    MAX_EVIDENCE_NATS,
    MEASUREMENT_SIGMA,
    POSITION_SIGMA,
    SIZE_FILTER_S,
    VELOCITY_DECAY_S,
    VELOCITY_SIGMA,
)
from pose.lifting.repair.swaps import MAX_START_DIFFERENCE_S
from pose.structures.defaults import MAX_TRACK_GAP_S


@dataclass(frozen=True)
class Filter:
    """One pair's d: position and velocity as complex numbers, their variances and covariance."""

    position: complex = 0
    velocity: complex = 0
    pp: float = 0.0
    pv: float = 0.0
    vv: float = 0.0

    def later(self, step):
        """After `step` seconds of an Ornstein-Uhlenbeck process."""
        kept = math.exp(-step / VELOCITY_DECAY_S)
        way, noise = VELOCITY_DECAY_S * (1 - kept), ACCELERATION * VELOCITY_DECAY_S
        return Filter(
            self.position + way * self.velocity,
            self.velocity * kept,
            self.pp + 2 * way * self.pv + way**2 * self.vv
            + noise * VELOCITY_DECAY_S * (step - 2 * way + VELOCITY_DECAY_S * (1 - kept**2) / 2),
            (self.pv + way * self.vv) * kept + noise * way**2 / VELOCITY_DECAY_S / 2,
            self.vv * kept**2 + noise * (1 - kept**2) / 2,
        )  # fmt: skip

    def far(self, d, score):
        """Squares of standard deviations that d is off, and its variance."""
        variance = self.pp + (MEASUREMENT_SIGMA / max(score, 0.1)) ** 2
        return abs(d - self.position) ** 2 / variance, variance

    def against(self, d, score):
        far, variance = self.far(d, score)
        return min(far / 2, MAX_EVIDENCE_NATS) + math.log(variance)

    def updated(self, d, score):
        far, variance = self.far(d, score)
        trust = min(1, math.sqrt(2 * MAX_EVIDENCE_NATS / far)) if far else 1
        p, v = trust * self.pp / variance, trust * self.pv / variance
        error = d - self.position
        return Filter(
            self.position + p * error, self.velocity + v * error,
            self.pp * (1 - p), self.pv * (1 - p), self.vv - v * self.pv,
        )  # fmt: skip


@dataclass(frozen=True)
class Survivor:
    """A way to explain one limb's past that ends as seen or swapped. path: of every frame. since: of its last run."""

    cost: float
    filters: tuple[Filter, ...]
    path: tuple[bool, ...] = ()
    since: float = math.inf

    def turned(self, swapped, time):
        filters = (replace(f, position=-f.position, velocity=-f.velocity) for f in self.filters)
        return replace(self, filters=tuple(filters), path=(*self.path[:-1], swapped), since=time)


@dataclass
class Limb:
    pairs: np.ndarray
    survivors: list[Survivor]
    last_seen: list[float]
    turned: float = -math.inf
    answers: list[bool] = field(default_factory=list)
    begun: float = math.inf

    @property
    def swapped(self):
        return self.survivors[1].cost < self.survivors[0].cost

    def see(self, d, scores, time, step, rules):
        def predicted(pair, f):
            lost = time - self.last_seen[pair] > MAX_TRACK_GAP_S
            return Filter(0, 0, POSITION_SIGMA**2, 0, VELOCITY_SIGMA**2) if lost else f.later(step)

        old = [replace(s, filters=tuple(predicted(*pair) for pair in enumerate(s.filters))) for s in self.survivors]
        known = [pair for pair, score in enumerate(scores) if score > 0]
        new = []
        for swapped, sign in ((False, 1), (True, -1)):
            ways = []
            for before, survivor in enumerate(old):
                cost = survivor.cost + sum(survivor.filters[k].against(sign * d[k], scores[k]) for k in known)
                ways.append(
                    cost + rules.switch_cost_nats * (before != swapped) + rules.swapped_cost_nats_s * step * swapped
                )
            best = old[int(ways[1] < ways[0])]
            filters = tuple(f.updated(sign * d[k], scores[k]) if k in known else f for k, f in enumerate(best.filters))
            since = best.since if swapped and ways[1] < ways[0] else time
            new.append(Survivor(min(ways), filters, (*best.path, swapped), since))
        self.survivors = new
        for k in known:
            self.last_seen[k] = time

    def turn(self, time):
        seen, swapped = self.survivors
        self.survivors = [swapped.turned(False, time), seen.turned(True, time)]

    def answer(self, times, now, lookahead, rules):
        path = self.survivors[self.swapped].path
        while len(self.answers) < len(path) and times[len(self.answers)] <= now - lookahead:
            row = len(self.answers)
            end = next((i for i in range(row, len(path)) if not path[i]), len(path) - 1)
            self.begun = min(self.begun, times[row]) if path[row] else math.inf
            self.answers.append(path[row] and times[end] - self.begun <= rules.max_swap_s)


def swapped_by_definition(sequence, pairs, rules, lookahead):
    """(T, G) where the limbs, (K, 2) pairs of joints each, are swapped; what `SwapFinder` says, without `ends`."""
    limbs = []
    for some in pairs:
        nothing = (Filter(),) * len(some)
        limbs.append(
            Limb(some, [Survivor(0, nothing), Survivor(rules.switch_cost_nats, nothing)], [-math.inf] * len(some))
        )
    size, sized, before = 1.0, -math.inf, -math.inf
    times = sequence.times.tolist()
    for keypoints, scores, time in zip(sequence.keypoints, sequence.scores.tolist(), times, strict=True):
        seen = keypoints[np.array(scores) > 0]
        if len(seen):
            measured = max(float(np.ptp(seen, axis=0).max()), 1.0)
            size += (measured - size) * min((time - sized) / SIZE_FILTER_S, 1)
            sized = time
        step, before = min(time - before, MAX_TRACK_GAP_S), time
        for limb in limbs:
            d = [complex(*(keypoints[left] - keypoints[right]).tolist()) / (2 * size) for left, right in limb.pairs]
            limb.see(d, [min(scores[left], scores[right]) for left, right in limb.pairs], time, step, rules)
        turn(limbs, time, rules)
        for limb in limbs:
            limb.answer(times, time, lookahead, rules)
    for limb in limbs:
        limb.survivors[1] = replace(limb.survivors[1], cost=limb.survivors[1].cost + rules.switch_cost_nats)
        limb.answer(times, math.inf, 0, rules)
    return np.array([limb.answers for limb in limbs]).T


def turn(limbs, time, rules):
    """Believe what has lasted for too long, or ends such a one."""
    begun = [limb.survivors[1].since for limb in limbs]
    together = all(limb.swapped for limb in limbs) and max(begun) - min(begun) < MAX_START_DIFFERENCE_S
    for limb in [limb for limb in limbs if limb.swapped]:
        back = time - limb.turned < rules.max_return_s
        lasts = time - limb.survivors[1].since > rules.max_swap_s or (
            together and time - min(begun) > rules.max_joint_swap_s
        )
        if back or lasts:
            limb.turned = -math.inf if back else time
            limb.turn(time)
