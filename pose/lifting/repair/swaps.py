"""Detection of left-right swaps over time, for legs and arms separately and for the whole body.

Half the difference of a left and a right joint, d = (left - right) / 2, changes its sign in a left-right swap. So the
swaps of a limb are the signs s(t) for which s(t) d(t) moves smoothly. `pose.lifting.repair.halves` gives the likelihood
of each
next s d. The Viterbi algorithm finds the best signs, with one filter per survivor path (per-survivor processing:
Raheli, Polydoros and Tzou, IEEE Transactions on Communications, 1995). Where left and right coincide, d is 0 and the
sign has no effect.

The evidence of one limb is weak, so only short swaps are accepted; if one lasts longer, the person probably turned
unobserved. If a network confuses front and back, the whole body swaps sides from one frame to the next, and back some
seconds later. A person who turns shows the side view in between. Swaps of the whole body may therefore last some
seconds if both their start and their end are observed.

Axes: S survivor (0: as observed, 1: swapped), G limb, K pair of all limbs, XY 2, J joint.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pose.lifting.repair.halves import HalfFilters, Predecessors
from pose.structures.defaults import MAX_TRACK_GAP_S
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, F64, Flags

LIMBS: dict[str, tuple[str, ...]] = {
    "legs": ("hip", "knee", "ankle", "heel", "big_toe", "small_toe", "foot_index"),
    "arms": ("shoulder", "elbow", "wrist", "pinky", "index", "thumb"),
}
BODY = ("hip", "knee", "ankle", "shoulder", "elbow", "wrist")

CHANGE_WINDOW_S = 0.07  # duration before and after a change of sides in which it must be visible
MIN_SEEN_S = 1.0  # duration for which a person must be seen before and after a change of sides
MIN_SIDE_DISTANCE = 0.02  # minimum root mean square of d there, relative to the person's size
MIN_BODY_CORRELATION = 0.2  # minimum correlation of d before with -d after, over the whole body
MIN_LIMB_CORRELATION = -0.3  # the same for legs and for arms, if their left and right are apart
MAX_START_DIFFERENCE_S = 0.15  # maximum difference between simultaneous starts

SwapTest = Callable[[int, int], bool]
"""Whether a swap is accepted in the waiting frames from the first number up to the second."""


@dataclass(frozen=True, slots=True)
class SwapRules:
    """Costs and limits of swaps."""

    switch_cost_nats: float  # cost of the start and of the end of a swap
    swapped_cost_nats_s: float  # cost per second of a swap
    max_swap_s: float  # maximum duration of a swap. If it lasts longer, the person is assumed to have turned unobserved
    max_return_s: float = 0.0  # time after such a turn within which another swap is assumed to be the turn back
    max_joint_swap_s: float = np.inf  # maximum duration if all limbs swapped at the same time
    min_swap_s: float = 0.0  # minimum duration of a swap; used only with `needs_both_ends`
    needs_both_ends: bool = False  # whether start and end of a swap must be observed


MAX_JOINT_SWAP_S = 0.3  # maximum duration of a swap of all limbs at once in a stream
LIMB_RULES = SwapRules(switch_cost_nats=3.0, swapped_cost_nats_s=16.0, max_swap_s=1.0)
BODY_RULES = SwapRules(
    switch_cost_nats=5.0,
    swapped_cost_nats_s=2.0,
    max_swap_s=5.0,
    min_swap_s=LIMB_RULES.max_swap_s,
    needs_both_ends=True,
)


def limb_rules(lookahead: float, face: bool = False) -> SwapRules:
    """Return the rules for legs and arms, without a limit on swaps together if the face shows the orientation."""
    # A stream with a shorter look-ahead than a swap would take the end of a swap for the start of the next one. The
    # rules of such streams therefore have additional limits.
    if lookahead >= LIMB_RULES.max_swap_s:
        return LIMB_RULES
    return replace(
        LIMB_RULES,
        max_return_s=BODY_RULES.max_swap_s - LIMB_RULES.max_swap_s,
        max_joint_swap_s=np.inf if face else MAX_JOINT_SWAP_S,
    )


def limb_pairs(skeleton: Skeleton) -> dict[str, NDArray[np.int64]]:
    """Return the left and right joint indices (K, 2) of the K joint pairs of a limb, for 'legs' and 'arms'."""
    return {limb: _pairs(skeleton, parts) for limb, parts in LIMBS.items()}


def body_pairs(skeleton: Skeleton) -> NDArray[np.int64]:
    """Return the joint indices (6, 2), left and right, of the pairs that all skeletons have, legs first."""
    # Hands and feet are left out, because they would count wrists and ankles twice.
    return _pairs(skeleton, BODY)


def _pairs(skeleton: Skeleton, parts: tuple[str, ...]) -> NDArray[np.int64]:
    known = [part for part in parts if f"left_{part}" in skeleton.names]
    return np.array([[skeleton.index(f"{side}_{part}") for side in ("left", "right")] for part in known])


class _Observation(NamedTuple):
    """Observations of one person in a frame."""

    time: float  # time of the frame, s
    half: F64  # (K, 2) d, relative to the person's size
    seen: Flags  # (K,) whether both joints of a pair are detected
    predecessors: list[Predecessors]  # survivors of the previous frame that survivors 0 and 1 continue, for each limb


@dataclass(slots=True)
class _Limb:
    """State of one limb."""

    cost: tuple[float, float]  # costs of the two survivors in nats, as observed and swapped
    since: float = math.inf  # start of the swap of the second survivor, s
    turned_at: float = -math.inf  # time of the last assumed turn of the person, s
    decided_since: float = math.inf  # start of the swap that contains the last decided frame, s; inf without one
    ends_seen: bool = True  # whether both ends of this swap are observed

    @property
    def swapped(self) -> bool:
        """Whether the limb is more likely swapped than not."""
        return self.cost[1] < self.cost[0]

    def choose(self, frame_nats: list[list[float]], switch_nats: float, swapped_nats: float) -> Predecessors:
        """Choose the predecessors of the new survivors, and update the costs (nats)."""
        before, (as_seen, swapped) = self.cost, zip(*frame_nats, strict=True)
        stay = before[0] + as_seen[0], before[1] + as_seen[1] + switch_nats
        change = before[0] + swapped[0] + switch_nats + swapped_nats, before[1] + swapped[1] + swapped_nats
        least = min(*stay, *change)
        self.cost = min(stay) - least, min(change) - least
        return stay.index(min(stay)), change.index(min(change))


class SwapFinder:
    """Frame-by-frame detection of swapped limbs of one person, with a delay of `lookahead` seconds."""

    def __init__(
        self, limbs: list[NDArray[np.int64]], rules: SwapRules, lookahead: float, accepts: SwapTest | None = None
    ) -> None:
        """Start before the first frame; a delay of 0 s decides at once, of inf only at the end."""
        # `accepts` further tests a swap, if the rules require both ends to be observed, from its first frame and the
        # one after its last, counted from the oldest undecided frame of the `take` call.
        self.rules, self._accepts = rules, accepts or (lambda begin, end: True)
        self._lookahead = lookahead
        self._filters = HalfFilters(limbs)
        self._limbs = [_Limb((0.0, rules.switch_cost_nats)) for _ in limbs]
        self._waiting: deque[_Observation] = deque()
        self._path: deque[list[bool]] = deque()  # best path: whether each limb is swapped, for the waiting frames
        self._past: deque[_Observation] = deque()  # the latest decided frames
        self._changed_back_at = -math.inf  # s, time at which the whole body last changed back
        self._time = -math.inf

    def push(self, keypoints: F32, scores: F32, time: float) -> None:
        """Add the next frame, keypoints (J, 2) px at `time` s."""
        step = float(min(time - self._time, MAX_TRACK_GAP_S))
        self._time = time
        frame_nats = self._filters.update(keypoints, scores, time, step).tolist()
        predecessors = []
        for limb, nats in zip(self._limbs, frame_nats, strict=True):
            predecessors.append(limb.choose(nats, self.rules.switch_cost_nats, self.rules.swapped_cost_nats_s * step))
            if predecessors[-1][1] == 0:
                limb.since = time
        self._filters.continue_survivors(predecessors)
        for number in self._turned_limbs():
            limb = self._limbs[number]
            self._filters.swap_survivors(number)
            limb.cost, predecessors[number] = limb.cost[::-1], predecessors[number][::-1]
            limb.since = time
        self._waiting.append(_Observation(time, self._filters.half, self._filters.seen, predecessors))

    def mark_change_back(self, time: float) -> None:
        """Report that a swap of the whole body ends in the frame at `time` (s). Call it before `push` of this frame."""
        # Limbs that seem to swap together in this frame then keep their state: the observed sides are correct again.
        self._changed_back_at = time

    def take(self, now: float) -> list[Flags]:
        """Return which limbs are swapped, for each frame decided at `now` (s), oldest first; inf returns all."""
        if now == math.inf:
            for limb in self._limbs:
                limb.cost = limb.cost[0], limb.cost[1] + self.rules.switch_cost_nats
            return self._decide(len(self._waiting))
        due = 0
        while due < len(self._waiting) and self._waiting[due].time <= now - self._lookahead:
            due += 1
        return self._decide(due) if due else []

    def _turned_limbs(self) -> list[int]:
        """Return the limbs whose swap is taken for a turn of the person, or back, so that their sides are correct."""
        starts = [limb.since for limb in self._limbs]
        simultaneous = all(limb.swapped for limb in self._limbs) and max(starts) - min(starts) < MAX_START_DIFFERENCE_S
        limbs = []
        for number, limb in enumerate(self._limbs):
            if not limb.swapped:
                continue
            turned = self._time - limb.since > self.rules.max_swap_s
            back = self._time - limb.turned_at < self.rules.max_return_s
            if simultaneous:
                turned |= self._time - min(starts) > self.rules.max_joint_swap_s
                back |= abs(min(starts) - self._changed_back_at) < MAX_START_DIFFERENCE_S
            if turned or back:
                limb.turned_at = -math.inf if back else self._time
                limbs.append(number)
        return limbs

    def _decide(self, count: int) -> list[Flags]:
        """Decide the `count` oldest waiting frames from the best path; return which limbs (G,) are swapped in each."""
        self._trace()
        decided = []
        for row in range(count):
            decided.append(np.array([self._is_swapped(number, row) for number in range(len(self._limbs))]))
            self._past.append(self._waiting.popleft())
            self._path.popleft()
        while self._past and self._past[0].time < self._past[-1].time - MAX_TRACK_GAP_S:
            self._past.popleft()
        return decided

    def _is_swapped(self, number: int, row: int) -> bool:
        """Return whether a limb is swapped in the oldest waiting frame."""
        limb = self._limbs[number]
        if not self._path[0][number]:
            limb.decided_since = math.inf
            return False
        last = len(self._path) - 1
        end = next((i for i, swapped in enumerate(self._path) if not swapped[number]), last)  # the frame after the swap
        if limb.decided_since == math.inf:
            limb.decided_since = self._waiting[0].time
            if self.rules.needs_both_ends:
                limb.ends_seen = self._ends_are_seen(number, end) and self._accepts(row, row + end)
        return self._waiting[end].time - limb.decided_since <= self.rules.max_swap_s and limb.ends_seen

    def _ends_are_seen(self, number: int, end: int) -> bool:
        """Return whether start and end of the swap that begins in the oldest waiting frame are observed."""
        if self._waiting[end].time - self._waiting[0].time < self.rules.min_swap_s:
            return False
        observations, first, pairs = [*self._past, *self._waiting], len(self._past), self._filters.pairs_of(number)
        return all(_changes_sides(observations, row, pairs) for row in (first, first + end))

    def _trace(self) -> None:
        """Trace the best path back through the waiting frames, to where it meets that of the previous call."""
        self._path.extend([[]] * (len(self._waiting) - len(self._path)))
        state = [limb.swapped for limb in self._limbs]
        for row in reversed(range(len(self._path))):
            if self._path[row] == state:
                return
            self._path[row] = state
            before = self._waiting[row].predecessors
            state = [bool(both[now]) for both, now in zip(before, state, strict=True)]


def _changes_sides(observations: list[_Observation], row: int, pairs: Flags) -> bool:
    """Return whether left and right change sides between the frames `row` - 1 and `row`."""
    # Both must be apart shortly before and after, and d must change its sign. False within `MIN_SEEN_S` of the first or
    # last frame.
    if row == 0 or observations[row].time - observations[row - 1].time > MAX_TRACK_GAP_S:
        return False
    if (
        observations[row].time - MIN_SEEN_S < observations[0].time
        or observations[row].time + MIN_SEEN_S > observations[-1].time
    ):
        return False
    before = [s for s in observations[:row] if s.time >= observations[row - 1].time - CHANGE_WINDOW_S]
    after = [s for s in observations[row:] if s.time <= observations[row].time + CHANGE_WINDOW_S]
    apart = []
    for side in (before, after):
        half = np.array([np.where(s.seen[pairs, None], s.half[pairs], np.nan) for s in side])
        apart.append(np.nan_to_num(_median(half)))
    shared = np.any(apart[0], axis=-1) & np.any(apart[1], axis=-1)
    was, becomes = (pair * shared[:, None] for pair in apart)
    size = (was**2 + becomes**2).sum(axis=-1)
    opposite = -2 * (was * becomes).sum(axis=-1)
    if size.sum() <= 2 * shared.sum() * MIN_SIDE_DISTANCE**2 or opposite.sum() <= MIN_BODY_CORRELATION * size.sum():
        return False
    # Legs alone could outweigh arms that do not swap, but a body swaps only as a whole.
    known, size, opposite = (np.array([half.sum() for half in np.split(row, 2)]) for row in (shared, size, opposite))
    return not np.any((size > 2 * known * MIN_SIDE_DISTANCE**2) & (opposite <= MIN_LIMB_CORRELATION * size))


def _median(half: F64) -> F64:
    """Return the median (K, 2) over time of (T, K, 2), NaN where nothing is seen."""
    some = ~np.isnan(half).all(axis=0)
    found = np.full(half.shape[1:], np.nan)
    found[some] = np.nanmedian(half[:, some], axis=0)
    return found
