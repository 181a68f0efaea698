"""Whether standing feet stay where they are once the camera's rotation is compensated.

A camera that is carried before a wall looks like one that turns or zooms: the background alone cannot tell. People can.
If the camera was carried, everybody moves too fast or too slowly by the same velocity, and so do feet that stand.

The lower foot of a person mostly stands, whatever the camera does. So the most frequent velocity of lower feet is that
of the floor. It is found by mean shift (D. Comaniciu and P. Meer, PAMI 24, 2002) among all people, in windows of some
seconds. In each window the density at rest, as a share of the density at the most frequent velocity, is 1 where feet
stand and falls towards 0 where they slide.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pose.camera_motion.decision import Decision
from pose.camera_motion.verdict import UNKNOWN
from pose.world.contacts import ground_below
from pose.world.gravity import ANKLES
from pose.world.rules import RULES, FootingRules

F64 = NDArray[np.float64]

_STARTS, _ROUNDS = 60, 8  # of the mean shift
_FEW = 8  # samples of a window


def lower_feet(placed: F64, times: F64, rules: FootingRules = RULES.footing) -> F64:
    """Velocities of the lower foot of one person where it is near the floor and does not rise or fall.

    Args:
        placed: (T, 17, 3) m in the world, before feet are held.
        times: (T,) s, increasing.
        rules: thresholds.

    Returns:
        (N, 4): time (s), velocity along x and z (m/s, the part along the line of sight times `rules.along_share`), and
        the seconds that the sample stands for.
    """
    if len(times) < 3:
        return np.zeros((0, 4))
    ankles, rows = placed[:, ANKLES], np.arange(len(times))
    low = ankles[..., 1].argmin(axis=1)
    velocity = np.gradient(ankles, times, axis=0)[rows, low]
    above = ankles[rows, low, 1] - ground_below(placed, times)
    near = (np.abs(velocity[:, 1]) < rules.vertical_mps) & (above < RULES.contacts.contact_height_m)
    sight = placed[:, 0, [0, 2]]  # the camera is above the origin
    sight = sight / np.maximum(np.linalg.norm(sight, axis=1, keepdims=True), 1e-9)
    level = velocity[:, [0, 2]]
    level = level - (1 - rules.along_share) * (level * sight).sum(axis=1, keepdims=True) * sight
    step = float(np.median(np.diff(times)))
    samples = np.column_stack([times, level, np.full(len(times), step)])
    return np.asarray(samples[near])


def standing_shares(samples: Iterable[F64], rules: FootingRules = RULES.footing) -> F64:
    """(W,) for each window of time with enough samples, the density of velocities at rest over the highest one.

    samples: of each person, as `lower_feet` gives them.
    """
    rows = np.concatenate([np.zeros((0, 4)), *samples])
    if not len(rows):
        return np.zeros(0)
    begin, span = float(rows[:, 0].min()), float(np.ptp(rows[:, 0]))
    count = max(1, round(span / rules.window_s))
    window = np.minimum(((rows[:, 0] - begin) / max(span, 1e-9) * count).astype(int), count - 1)
    shares = []
    for number in range(count):
        part = rows[window == number]
        if len(part) >= _FEW and part[:, 3].sum() >= rules.least_s:
            shares.append(_share_at_rest(part[:, 1:3], rules.width_mps))
    return np.array(shares)


def settle(decision: Decision, samples: Iterable[F64], rules: FootingRules = RULES.footing) -> Decision:
    """The decision about a compensated camera, after a look at the feet.

    Where the background shows a rotation with certainty, feet must clearly contradict it to count; elsewhere they must
    support it. samples: as in `standing_shares`, with the camera compensated.
    """
    if decision.path is None or not decision.check_feet:
        return decision
    shares, certain = standing_shares(samples, rules), decision.motion.certain
    if not len(shares):
        why = "" if certain else "the background does not tell rotation from translation, and no feet stand"
    else:
        least = rules.least_standing if certain else rules.least_standing_uncertain
        slides = float((shares < least).mean()) > rules.most_sliding
        why = "standing feet slide with its rotation compensated, so it may have moved from its place" if slides else ""
    if not why:
        return decision
    problem = f"the camera's motion is unknown: {why}; no world is written (--camera rotating ignores that)"
    return Decision(replace(decision.motion, kind=UNKNOWN), problem=problem)


def _share_at_rest(velocities: F64, width: float) -> float:
    """The density of velocities (N, 2) at 0 over that at the most frequent one."""

    def weights(at: F64) -> F64:
        return np.asarray(np.exp(-0.5 * ((velocities - at) ** 2).sum(axis=1) / width**2))

    highest = rest = float(weights(np.zeros(2)).sum())
    starts = np.linspace(0, len(velocities) - 1, min(_STARTS, len(velocities))).astype(int)
    for at in velocities[starts]:
        for _ in range(_ROUNDS):
            weight = weights(at)
            at = weight @ velocities / weight.sum()
        highest = max(highest, float(weights(at).sum()))
    return rest / max(highest, 1e-12)
