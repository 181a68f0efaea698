"""Left and right exchanged, found over time: legs and arms each on their own, and the whole body for longer.

Half the difference between a left joint and its right twin, d = (left - right) / 2, changes its sign when a detector
exchanges the two. So a limb's swaps are the signs s(t) that let s(t) d(t) move as bodies do. `pose.repair.halves` says
how likely each next s d is, and Viterbi's algorithm finds the best signs, each of its two survivors with a filter of
its own (per-survivor processing: Raheli, Polydoros and Tzou, IEEE Transactions on Communications, 1995). Where left and
right meet d is 0: then no sign is better, and none matters.

A limb by itself says little, so its exchange is short: what lasts is a turn that nobody saw. Where a front was taken
for a back the whole body changes sides between two frames, and some seconds later once more; no turn does that, for
a body that turns shows its side. So all pairs together bear seconds, if both ends are seen.

Axis legend: S survivor (0: as seen, 1: exchanged), G limb, K pair of all limbs, XY 2.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pose.gaps import LONGEST_GAP_SECONDS
from pose.repair.halves import F64, HalfFilters, Mask, Predecessors
from pose.skeletons import Skeleton
from pose.types import F32

LIMBS: dict[str, tuple[str, ...]] = {
    "legs": ("hip", "knee", "ankle", "heel", "big_toe", "small_toe", "foot_index"),
    "arms": ("shoulder", "elbow", "wrist", "pinky", "index", "thumb"),
}
BODY = ("hip", "knee", "ankle", "shoulder", "elbow", "wrist")

END_SECONDS = 0.07  # of frames before and of those after the end of an exchange, that must show it
SETTLED_SECONDS = 1.0  # that a person must be seen before it and after it
APART = 0.02  # root mean square of d there, at least; a share of the person's size in the picture
OPPOSITE = 0.2  # least correlation of d before with -d after, of the whole body
LIMB_OPPOSITE = -0.3  # and of its legs and of its arms, where they are apart
SAME_SECONDS = 0.15  # between what begins in one moment

Believed = Callable[[int, int], bool]
"""Whether an exchange is one, of the frames that wait from the first number up to the second."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How readily exchanges are believed. flip: nats that one costs, and again its end. swapped: nats for each second
    that it lasts. longest: s; what seems exchanged for longer is not: the person has turned, unseen. returns: s; who
    seems exchanged within this time after such a turn has turned back. together: s; the longest for limbs that began
    all in one moment. shortest: s; what lasts for less is not told. ends: whether both ends must be seen,
    `SETTLED_SECONDS` from the person's first and last frame, too.
    """

    flip: float
    swapped: float
    longest: float
    returns: float = 0.0
    together: float = np.inf
    shortest: float = 0.0
    ends: bool = False


MOMENT_SECONDS = 0.3  # that a stream exchanges limbs which changed together: both may as well have been wrong before
LIMB_RULES = Rules(flip=3.0, swapped=16.0, longest=1.0)
BODY_RULES = Rules(flip=5.0, swapped=2.0, longest=5.0, shortest=LIMB_RULES.longest, ends=True)


def limb_rules(lookahead: float, face: bool = False) -> Rules:
    """Those for limbs that are decided so many seconds late. Who does not see the whole of an exchange, and takes it
    for one until it has lasted too long, would take its end for the next. face: whether the person's face is known to
    speak; then limbs that change together may be exchanged until it does.
    """
    if lookahead >= LIMB_RULES.longest:
        return LIMB_RULES
    return replace(
        LIMB_RULES, returns=BODY_RULES.longest - LIMB_RULES.longest, together=np.inf if face else MOMENT_SECONDS
    )


def limb_pairs(skeleton: Skeleton) -> dict[str, NDArray[np.int64]]:
    """(K, 2) indices of the left and the right joint of each pair of each limb."""
    return {limb: _pairs(skeleton, parts) for limb, parts in LIMBS.items()}


def body_pairs(skeleton: Skeleton) -> NDArray[np.int64]:
    """(6, 2) the same of the joints that every skeleton has, legs first: hands and feet would count what wrists and
    ankles say.
    """
    return _pairs(skeleton, BODY)


def _pairs(skeleton: Skeleton, parts: tuple[str, ...]) -> NDArray[np.int64]:
    known = [part for part in parts if f"left_{part}" in skeleton.names]
    return np.array([[skeleton.index(f"{side}_{part}") for side in ("left", "right")] for part in known])


class _Sight(NamedTuple):
    """A frame of one person: s, d (K, 2), whether a pair is seen (K,), and for each limb the predecessors."""

    time: float
    half: F64
    seen: Mask
    predecessors: list[Predecessors]


@dataclass(slots=True)
class _Limb:
    """What is known of one limb. cost: nats of the survivors, as seen and exchanged. since: when the exchange of the
    second began. turned: when the person was found to have turned last, but not back. decided_since, clear: of the
    exchange up to the newest decided frame, when it began and whether both its ends can be seen.
    """

    cost: tuple[float, float]
    since: float = math.inf
    turned: float = -math.inf
    decided_since: float = math.inf
    clear: bool = True

    @property
    def exchanged(self) -> bool:
        """Whether that is likelier."""
        return self.cost[1] < self.cost[0]

    def choose(self, against: list[list[float]], flip: float, swapped: float) -> Predecessors:
        """Which survivors the new ones continue, and what these cost. against: nats, of each survivor and sign."""
        before, (as_seen, exchanged) = self.cost, zip(*against, strict=True)
        stay = before[0] + as_seen[0], before[1] + as_seen[1] + flip
        change = before[0] + exchanged[0] + flip + swapped, before[1] + exchanged[1] + swapped
        least = min(*stay, *change)
        self.cost = min(stay) - least, min(change) - least
        return stay.index(min(stay)), change.index(min(change))


class SwapFinder:
    """Says frame by frame which limbs of one person are exchanged, `lookahead` seconds late."""

    def __init__(
        self, limbs: list[NDArray[np.int64]], rules: Rules, lookahead: float, believed: Believed | None = None
    ) -> None:
        """limbs: (K, 2) each, the pairs that change places together. lookahead: s; 0 decides at once, inf only at the
        end. believed: is asked too where the rules want both ends of an exchange to be seen.
        """
        self.rules, self._believed = rules, believed or (lambda begin, end: True)
        self._lookahead = lookahead
        self._filters = HalfFilters(limbs)
        self._limbs = [_Limb((0.0, rules.flip)) for _ in limbs]
        self._waiting: deque[_Sight] = deque()
        self._path: deque[list[bool]] = deque()  # of each limb, for those that were traced
        self._past: deque[_Sight] = deque()  # the decided ones of the last moment
        self._over = -math.inf  # when the whole body was found to have changed back last
        self._time = -math.inf

    def push(self, keypoints: F32, scores: F32, time: float) -> None:
        """Take the next frame: (J, 2) px, (J,), 0 where not seen, and s."""
        step = float(min(time - self._time, LONGEST_GAP_SECONDS))
        self._time = time
        against = self._filters.see(keypoints, scores, time, step).tolist()
        predecessors = []
        for limb, nats in zip(self._limbs, against, strict=True):
            predecessors.append(limb.choose(nats, self.rules.flip, self.rules.swapped * step))
            if predecessors[-1][1] == 0:
                limb.since = time
        self._filters.follow(predecessors)
        for number in self._turned():
            limb = self._limbs[number]
            self._filters.turn(number)
            limb.cost, predecessors[number] = limb.cost[::-1], predecessors[number][::-1]
            limb.since = time
        self._waiting.append(_Sight(time, self._filters.half, self._filters.seen, predecessors))

    def change_back(self, time: float) -> None:
        """Say, before the frame of this time (s) comes, that the whole body changes back in it: limbs that seem
        exchanged from there on are what they were before.
        """
        self._over = time

    def take(self, now: float) -> list[Mask]:
        """(G,) for each frame that is decided at `now` (s; inf: nothing follows), oldest first."""
        if now == math.inf:
            for limb in self._limbs:
                limb.cost = limb.cost[0], limb.cost[1] + self.rules.flip
            return self._decide(len(self._waiting))
        due = 0
        while due < len(self._waiting) and self._waiting[due].time <= now - self._lookahead:
            due += 1
        return self._decide(due) if due else []

    def _turned(self) -> list[int]:
        """Of which limbs the likeliest exchange has lasted for too long, or ends such a one: it is how the person is,
        from this frame on.
        """
        begun = [limb.since for limb in self._limbs]
        together = all(limb.exchanged for limb in self._limbs) and max(begun) - min(begun) < SAME_SECONDS
        found = []
        for number, limb in enumerate(self._limbs):
            if not limb.exchanged:
                continue
            turned = self._time - limb.since > self.rules.longest
            back = self._time - limb.turned < self.rules.returns
            if together:
                turned |= self._time - min(begun) > self.rules.together
                back |= abs(min(begun) - self._over) < SAME_SECONDS
            if turned or back:
                limb.turned = -math.inf if back else self._time
                found.append(number)
        return found

    def _decide(self, count: int) -> list[Mask]:
        """The best path's answers for the `count` oldest frames that wait, without what lasts for too long."""
        self._trace()
        decided = []
        for row in range(count):
            decided.append(np.array([self._is_exchanged(number, row) for number in range(len(self._limbs))]))
            self._past.append(self._waiting.popleft())
            self._path.popleft()
        while self._past and self._past[0].time < self._past[-1].time - LONGEST_GAP_SECONDS:
            self._past.popleft()
        return decided

    def _is_exchanged(self, number: int, row: int) -> bool:
        """Whether a limb is exchanged in the oldest frame that waits, which had `row` before it a moment ago."""
        limb = self._limbs[number]
        if not self._path[0][number]:
            limb.decided_since = math.inf
            return False
        last = len(self._path) - 1
        end = next((i for i, exchanged in enumerate(self._path) if not exchanged[number]), last)  # the frame after it
        if limb.decided_since == math.inf:
            limb.decided_since = self._waiting[0].time
            if self.rules.ends:
                limb.clear = self._ends_are_seen(number, end) and self._believed(row, row + end)
        return self._waiting[end].time - limb.decided_since <= self.rules.longest and limb.clear

    def _ends_are_seen(self, number: int, end: int) -> bool:
        """Whether both ends are of the exchange that begins in the oldest frame that waits."""
        if self._waiting[end].time - self._waiting[0].time < self.rules.shortest:
            return False
        sights, first, pairs = [*self._past, *self._waiting], len(self._past), self._filters.pairs_of(number)
        return all(_changes_sides(sights, row, pairs) for row in (first, first + end))

    def _trace(self) -> None:
        """The best path through the frames that wait; where it meets that of the last time the rest is the same."""
        self._path.extend([[]] * (len(self._waiting) - len(self._path)))
        state = [limb.exchanged for limb in self._limbs]
        for row in reversed(range(len(self._path))):
            if self._path[row] == state:
                return
            self._path[row] = state
            before = self._waiting[row].predecessors
            state = [bool(both[now]) for both, now in zip(before, state, strict=True)]


def _changes_sides(sights: list[_Sight], row: int, pairs: Mask) -> bool:
    """Whether left and right of a body are apart just before and from frame `row` on, and the other way round. pairs:
    (K,) which are those of the body.
    """
    if row == 0 or sights[row].time - sights[row - 1].time > LONGEST_GAP_SECONDS:
        return False
    if sights[row].time - SETTLED_SECONDS < sights[0].time or sights[row].time + SETTLED_SECONDS > sights[-1].time:
        return False
    before = [s for s in sights[:row] if s.time >= sights[row - 1].time - END_SECONDS]
    after = [s for s in sights[row:] if s.time <= sights[row].time + END_SECONDS]
    apart = []
    for side in (before, after):
        half = np.array([np.where(s.seen[pairs, None], s.half[pairs], np.nan) for s in side])
        apart.append(np.nan_to_num(_median(half)))
    shared = np.any(apart[0], axis=-1) & np.any(apart[1], axis=-1)
    was, becomes = (pair * shared[:, None] for pair in apart)
    size = (was**2 + becomes**2).sum(axis=-1)
    opposite = -2 * (was * becomes).sum(axis=-1)
    if size.sum() <= 2 * shared.sum() * APART**2 or opposite.sum() <= OPPOSITE * size.sum():
        return False
    # Legs alone may outweigh arms that stay as they are: what changes sides is a body only if both do.
    known, size, opposite = (np.array([half.sum() for half in np.split(row, 2)]) for row in (shared, size, opposite))
    return not np.any((size > 2 * known * APART**2) & (opposite <= LIMB_OPPOSITE * size))


def _median(half: F64) -> F64:
    """(K, 2) of (T, K, 2), NaN where nothing is seen."""
    some = ~np.isnan(half).all(axis=0)
    found = np.full(half.shape[1:], np.nan)
    found[some] = np.nanmedian(half[:, some], axis=0)
    return found
