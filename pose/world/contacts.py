"""Foot contacts: a foot is in contact while it is slow and low for long enough, with hysteresis thresholds.

The speed criterion follows D. Rempe et al., "HuMoR", ICCV 2021, with hysteresis added. The thresholds were fitted to
the true contacts of the training subjects.
"""

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F64, Flags
from pose.world.gravity import ANKLES
from pose.world.rules import CONTACTS, FLOOR

_FLOOR_PERCENTILE = 5  # percentile of a point's height that is its floor
_MAX_ABOVE_LOWEST_M = 0.03  # m, maximum height of supporting feet above the lowest joint


def ankle_speeds(ankles: NDArray[np.floating], times: F64) -> F64:
    """Return speeds (T, 2) m/s of two ankles (T, 2, 3) m at times (T,) s, from central differences."""
    if len(times) < 2:
        return np.zeros(ankles.shape[:2])
    return np.asarray(np.linalg.norm(np.gradient(ankles.astype(np.float64), times, axis=0), axis=-1))


def find_contacts(ankles: NDArray[np.floating], times: F64) -> tuple[Flags, F64]:
    """Find the foot contacts, (T, 2) for the left and right foot, and their probabilities (T, 2)."""
    speed = ankle_speeds(ankles, times)
    height = ankles[..., 1] - ANKLE_HEIGHT
    middle = (CONTACTS.contact_on_speed_mps + CONTACTS.contact_off_speed_mps) / 2
    slow = 1 / (1 + np.exp(np.clip((speed - middle) / CONTACTS.speed_width_mps, -30, 30)))
    near = 1 / (1 + np.exp(np.clip((height - CONTACTS.max_contact_height_m) / CONTACTS.height_width_m, -30, 30)))
    probability = slow * near
    contacts = np.stack(
        [_with_hysteresis(speed[:, i], height[:, i] < CONTACTS.max_contact_height_m, times) for i in range(2)],
        axis=1,
    )
    return contacts, probability


def point_contacts(points: F64, times: F64) -> Flags:
    """Find the contacts (T, ...) of points of feet, such as heels, by the rules of `find_contacts`; False for NaN."""
    contacts = np.zeros(points.shape[:-1], bool)
    for at in np.ndindex(points.shape[1:-1]):
        path = points[:, *at].astype(np.float64)
        known = np.isfinite(path).all(axis=-1)
        if known.any():
            raised = path[known] - (0, np.percentile(path[known, 1], _FLOOR_PERCENTILE) - ANKLE_HEIGHT, 0)
            contacts[(known, *at)] = find_contacts(np.stack([raised, raised], axis=1), times[known])[0][:, 0]
    return contacts


def ground_below(joints: F64, times: F64) -> F64:
    """Return the height above the floor of a person's support, (T,) m; 0 on the floor."""
    # The support may be a step, a stool or a treadmill. Its height is the minimum height of the lower foot up to
    # `max_flight_s` (the longest flight phase) before and after a frame. It is 0 if another joint is lower than the
    # feet in any of these frames.
    feet = joints[:, ANKLES, 1].min(axis=1)
    standing = np.where(feet <= joints[..., 1].min(axis=1) + _MAX_ABOVE_LOWEST_M, feet - ANKLE_HEIGHT, 0.0)
    first, last = (np.searchsorted(times, times + side * (CONTACTS.max_flight_s + 1e-9)) for side in (-1, 1))
    return np.maximum([standing[a:b].min() for a, b in zip(first, last, strict=True)], 0.0)


def _with_hysteresis(speed: F64, low: Flags, times: F64) -> Flags:
    """Return contacts (T,) with hysteresis, without short contacts and short pauses."""
    contacts = np.zeros(len(times), bool)
    in_contact = False
    for t, (fast, near) in enumerate(zip(speed.tolist(), low.tolist(), strict=True)):
        in_contact = near and fast < (CONTACTS.contact_off_speed_mps if in_contact else CONTACTS.contact_on_speed_mps)
        contacts[t] = in_contact
    for value in (False, True):
        for first, last in runs(contacts == value):
            inner = first > 0 and last < len(times)
            long = times[min(last, len(times) - 1)] - times[first]
            if long < CONTACTS.min_contact_s - 1e-6 and (inner or value):
                contacts[first:last] = not value
    return contacts


def runs(mask: Flags) -> list[tuple[int, int]]:
    """Return (first, one after the last) of every run of True values in (T,)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


ANKLE_HEIGHT = 0.08  # m above the floor when standing
_MIN_SAMPLES = 5


def own_floor(ankles: NDArray[np.floating], times: F64, seen: NDArray[np.bool_] | None = None) -> float | None:
    """Return the height in m of the floor under one person: a low percentile of slow feet; None if unknown."""
    if len(ankles) < 3:
        return None
    speed = np.linalg.norm(np.gradient(ankles, times, axis=0), axis=-1)
    slow = speed < FLOOR.max_standing_speed_mps
    shown = slow & seen if seen is not None else slow
    heights = ankles[..., 1][shown if shown.sum() >= _MIN_SAMPLES else slow]
    if len(heights) < _MIN_SAMPLES:
        heights = ankles[..., 1].min(axis=1)
    return float(np.percentile(heights, FLOOR.lowest_percentile)) - ANKLE_HEIGHT


def common_floor(floors: list[float], seconds: list[float]) -> float:
    """Return the height of the common floor: the median over people, weighted by duration."""
    order = np.argsort(floors)
    share = np.cumsum(np.array(seconds)[order])
    return float(np.array(floors)[order][np.searchsorted(share, share[-1] / 2)])
