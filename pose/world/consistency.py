"""Detection of limbs whose 2D contradicts the person's bones, such as a knee detected at mid-thigh under clothes.

A network may report such a joint with a high score, and the lifter then bends the limb to explain it. The projected
lengths of both bones of a limb, relative to their own lengths, are compared over a few seconds:

- A leg is inconsistent if the ratio of its thigh to its shank differs from those of the other leg and of a straight
  leg. In a walk or a squat the two legs agree in the median over time.
- Arms have no such symmetry. An arm is inconsistent if one bone appears longer than it is, which no posture explains,
  while the other one appears short.

A flagged limb keeps its pose. The uncertainty of its middle and end joint grows with the displacement of the middle
joint along the limb.
"""

import numpy as np

from pose.structures.skeletons import H36M17, LIMBS
from pose.structures.types import F64, Flags
from pose.world.rules import CONSISTENCY
from pose.world.work import Person

_JOINTS = [[H36M17.index(joint) for joint in joints] for joints in LIMBS.values()]
_OPPOSITE = [1, 0, 3, 2]  # index of the same limb on the other side
_LEGS = np.array([name.endswith("leg") for name in LIMBS])
_MIN_RELATIVE_LENGTH = 0.02  # minimum relative length of a bone; a shorter one is noise
_STEPS = 8  # evaluations of the median per window


def check_limbs(person: Person) -> tuple[Flags, F64]:
    """Return the limbs (T, 4) whose 2D contradicts the bone lengths, and sigma (T, 17) mm to add in quadrature."""
    flags, added = np.zeros((len(person), len(LIMBS)), bool), np.zeros((len(person), len(H36M17)))
    if len(person) < CONSISTENCY.min_frames:
        return flags, added
    relative, lengths = _relative_lengths(person)
    ratios, longest = _medians(relative, person.times)
    other = ratios[:, _OPPOSITE]
    differs = (np.abs(ratios - other) > CONSISTENCY.min_leg_log_difference) & (np.abs(ratios) > np.abs(other))
    legs = (np.abs(ratios) > CONSISTENCY.min_leg_log_ratio) & differs
    arms = (np.abs(ratios) > CONSISTENCY.min_arm_log_ratio) & (longest > CONSISTENCY.min_arm_stretch_ratio)
    flags[:] = np.where(_LEGS, legs, arms)
    expected = np.where(_LEGS, np.nan_to_num(other), 0.0)
    moved = np.abs(_middle_joint(ratios, lengths) - _middle_joint(expected, lengths)) * lengths.sum(axis=-1)
    for limb, (_, middle, end) in enumerate(_JOINTS):
        share = CONSISTENCY.leg_sigma_share if _LEGS[limb] else CONSISTENCY.arm_sigma_share
        extra = np.where(flags[:, limb], 1000 * share * moved[:, limb], 0.0)
        added[:, [middle, end]] = np.nan_to_num(extra)[:, None]
    return flags, added


def _relative_lengths(person: Person) -> tuple[F64, F64]:
    """Return projected / true lengths (T, 4, 2) of each limb's bones, NaN if not detected, and true ones (4, 2) m."""
    places = person.joints + person.root[:, None]
    relative, lengths = np.full((len(person), len(LIMBS), 2), np.nan), np.zeros((len(LIMBS), 2))
    for limb, joints in enumerate(_JOINTS):
        for bone, pair in enumerate((joints[:2], joints[1:])):
            lengths_3d = np.linalg.norm(places[:, pair[1]] - places[:, pair[0]], axis=1)
            depth = np.maximum(places[:, pair, 2].mean(axis=1), 0.1)
            seen = np.linalg.norm(person.rays[:, pair[1]] - person.rays[:, pair[0]], axis=1) * depth
            is_seen = person.scores[:, pair].min(axis=1) > CONSISTENCY.min_score
            relative[is_seen, limb, bone] = seen[is_seen] / np.maximum(lengths_3d[is_seen], 1e-6)
            lengths[limb, bone] = np.median(lengths_3d)
    return relative, lengths


def _medians(relative: F64, times: F64) -> tuple[F64, F64]:
    """Return sliding medians (T, 4) of the log ratio of a limb's relative lengths, and of the larger length."""
    # Relative lengths are projected lengths divided by true lengths. NaN with too few detections.
    within = np.maximum(relative, _MIN_RELATIVE_LENGTH)
    values = np.concatenate([np.log(within[..., 0] / within[..., 1]), relative[..., 0], relative[..., 1]], axis=1)
    step = CONSISTENCY.window_s / _STEPS
    slots = np.floor((times - times[0]) / step).astype(np.int64)
    medians = np.full((len(times), values.shape[1]), np.nan)
    for slot in np.unique(slots):
        middle = times[0] + (slot + 0.5) * step
        first, last = np.searchsorted(times, [middle - CONSISTENCY.window_s / 2, middle + CONSISTENCY.window_s / 2])
        window_values = values[first:last]
        counts = np.isfinite(window_values).sum(axis=0)
        enough = counts >= max(CONSISTENCY.min_frames, CONSISTENCY.min_frame_share * len(window_values))
        if enough.any() and times[last - 1] - times[first] >= CONSISTENCY.window_s / 2:
            medians[np.ix_(slots == slot, enough)] = np.nanmedian(window_values[:, enough], axis=0)
    ratios, upper, lower = np.split(medians, 3, axis=1)
    return ratios, np.fmax(upper, lower)


def _middle_joint(ratios: F64, lengths: F64) -> F64:
    """Return the position of the detected middle joint along its limb, 0 to 1, from log ratios (T, 4)."""
    upper = np.exp(ratios) * lengths[:, 0]
    return np.asarray(upper / (upper + np.maximum(lengths[:, 1], 1e-6)))
