"""Cut-off frequencies of the smoothing from the residuals of the motion itself, for each person and joint group.

The residual of a cut-off is the root mean square difference between the motion and the filtered motion. Noise alone
gives a residual that falls linearly towards high cut-offs. Where the residual equals the value of that line at 0 Hz,
the filter removes as much of the motion as it lets through of the noise. Source: Winter, Biomechanics and Motor Control
of Human Movement, 4th edition, 2009, section 3.4.4.3. A clip has quiet and fast parts; the fast ones decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pose.structures.skeletons import H36M17
from pose.structures.smooth import zero_phase
from pose.structures.types import F64
from pose.world.person import Person
from pose.world.rules import SMOOTH

_TRUNK = ("pelvis", "spine", "thorax", "neck", "head", "left_hip", "right_hip", "left_shoulder", "right_shoulder")
_ARMS = tuple(f"{side}_{joint}" for side in ("left", "right") for joint in ("elbow", "wrist"))
_LEGS = tuple(f"{side}_{joint}" for side in ("left", "right") for joint in ("knee", "ankle"))
GROUPS = {name: [H36M17.index(joint) for joint in joints]
          for name, joints in (("trunk", _TRUNK), ("arms", _ARMS), ("legs", _LEGS))}  # fmt: skip
_STEP_HZ = 0.5
_HIGHEST_SHARE = 0.9  # cut-offs are tried up to this share of the Nyquist frequency
_ORDER = 4  # of the filter of the analysis: steep, so that motion below a cut-off leaves no residual
_LINE_SHARE = 0.7  # the residual is linear above this share of the highest cut-off
_PART_S = 1.0  # length of the parts that are ranked by speed
_MIN_FRAMES = 15


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """Cut-off frequencies in Hz."""

    trunk: float
    arms: float
    legs: float
    path: float  # of the pelvis


def all_at(cutoff_hz: float) -> Cutoffs:
    """Return one cut-off frequency for everything."""
    return Cutoffs(cutoff_hz, cutoff_hz, cutoff_hz, cutoff_hz)


def find_cutoffs(person: Person, parts: Sequence[slice]) -> Cutoffs:
    """Choose the cut-off frequency of each joint group, and of the path, by residual analysis.

    Args:
        person: The motion before smoothing.
        parts: Stretches of it without long gaps.
    """
    found = {name: _cutoff(person.joints[:, joints], person.times, parts) for name, joints in GROUPS.items()}
    return Cutoffs(**found, path=SMOOTH.min_cutoff_hz)


def smooth_person(joints: F64, root: F64, times: F64, cutoffs: Cutoffs) -> tuple[F64, F64]:
    """Return joints (T, 17, 3) m and roots (T, 3) m, filtered with zero phase."""
    smooth = np.empty_like(joints)
    for name, group in GROUPS.items():
        smooth[:, group] = zero_phase(joints[:, group], times, getattr(cutoffs, name))
    return smooth, zero_phase(root, times, cutoffs.path)


def _cutoff(values: F64, times: F64, parts: Sequence[slice]) -> float:
    """Return the cut-off frequency of values (T, J, 3) m."""
    usable = [part for part in parts if part.stop - part.start >= _MIN_FRAMES]
    if not usable:
        return SMOOTH.min_cutoff_hz
    rate = 1 / float(np.median(np.concatenate([np.diff(times[part]) for part in usable])))
    highest = min(_HIGHEST_SHARE * rate / 2, 2 * SMOOTH.max_cutoff_hz)
    tried = np.arange(_STEP_HZ, highest, _STEP_HZ)
    line = tried >= _LINE_SHARE * highest
    if np.count_nonzero(line) < 2:
        return SMOOTH.min_cutoff_hz
    squares, speeds, weights = [], [], []
    for part in usable:
        own, at = values[part], times[part]
        errors = np.stack(
            [((own - zero_phase(own, at, float(hz), _ORDER)) ** 2).sum(axis=2).mean(axis=1) for hz in tried]
        )
        speed = np.linalg.norm(np.gradient(own, at, axis=0), axis=2).mean(axis=1)
        pieces = np.array_split(np.arange(len(at)), max(1, round((at[-1] - at[0]) / _PART_S)))
        for piece in pieces:
            squares.append(errors[:, piece].mean(axis=1))
            speeds.append(speed[piece].mean())
            weights.append(len(piece))
    order = np.argsort(speeds)[::-1]
    chosen = order[: max(1, round(SMOOTH.fast_share * len(order)))]
    share = np.array(weights, float)[chosen]
    residual = np.sqrt(np.average(np.array(squares)[chosen], axis=0, weights=share))
    slope, noise = np.polyfit(tried[line], residual[line], 1)
    below = np.flatnonzero(residual <= noise) if slope < 0 else np.zeros(0, int)
    wanted = float(tried[below[0]]) if len(below) else highest
    return float(np.clip(wanted, SMOOTH.min_cutoff_hz, SMOOTH.max_cutoff_hz))
