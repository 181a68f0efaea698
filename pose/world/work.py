"""Intermediate data of a person between the steps without a world and the steps with one.

The residual of a cut-off is the root mean square difference between the motion and the filtered motion. Noise alone
gives a residual that falls linearly towards high cut-offs. Where the residual equals the value of that line at 0 Hz,
the filter removes as much of the motion as it lets through of the noise. Source: Winter, Biomechanics and Motor Control
of Human Movement, 4th edition, 2009, section 3.4.4.3. A clip has quiet and fast parts; the fast ones decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pose.structures.columns import column
from pose.structures.sequences import Sequence2D, Sequence3D
from pose.structures.skeletons import H36M17, LIMBS, get_skeleton, to_h36m17
from pose.structures.smooth import zero_phase
from pose.structures.types import F64, U8, Flags
from pose.world.height import PersonSize, scale_to
from pose.world.rules import SMOOTH

_J = len(H36M17)


@dataclass(frozen=True, slots=True)
class Person:
    """One person in T frames."""

    joints: F64 = column("", (_J, 3))  # (T, 17, 3) m relative to the pelvis, camera axes
    root: F64 = column("", (3,))  # (T, 3) m, position of the pelvis, camera axes
    sigma: F64 = column("", (_J,))  # (T, 17) mm, uncertainty of the joints
    times: F64 = column("", dtype="<f8")  # (T,) s, increasing
    # (T, 17, 2) detected joints in normalised camera coordinates, 0 where not detected.
    rays: F64 = column("", (_J, 2))
    scores: F64 = column("", (_J,))  # (T, 17) detection scores

    def __len__(self) -> int:
        return len(self.times)


def person_of(lifted: Sequence3D, seen: Sequence2D) -> Person:
    """Combine the 3D poses `lifted` of a person and the 2D keypoints `seen` from which they were lifted."""
    pixels, scores = to_h36m17(seen.keypoints, seen.scores, get_skeleton(seen.skeleton))
    rays = np.where(scores[..., None] > 0, seen.camera.unproject(pixels), 0.0)
    joints, root, sigma = (part.astype(np.float64) for part in (lifted.joints, lifted.root, lifted.sigma))
    return Person(joints, root, sigma, lifted.times, rays, scores.astype(np.float64))


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
    """Choose cut-off frequencies of joint groups and path from the residuals of `parts` without long gaps."""
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


@dataclass(frozen=True, slots=True)
class Work:
    """One person in T frames, including filled ones, in the axes of the camera or of its path; float64 in memory."""

    bones: F64  # (16,) m, bone lengths
    height: float  # body height, m
    times: F64 = column("", dtype="<f8")  # (T,) s
    joints: F64 = column("", (_J, 3))  # (T, 17, 3) m relative to the pelvis
    root: F64 = column("", (3,))  # (T, 3) m, position of the pelvis
    sigma: F64 = column("", (_J,))  # (T, 17) mm, uncertainty of the joints
    lifted: F64 = column("", (_J, 3))  # (T, 17, 3) m, joints before the steps that move them; NaN in filled frames
    feet_seen: Flags = column("", (2,), "?")  # (T, 2), whether the image shows the left and the right ankle
    visible: Flags = column("", dtype="?")  # (T,), whether the image shows the person fully
    filled: Flags = column("", dtype="?")  # (T,), whether the frame fills a gap
    # (T, 4), whether the 2D of each limb contradicts the bone lengths. The order is left leg, right leg, left arm,
    # right arm.
    inconsistent: Flags = column("", (len(LIMBS),), "?")
    root_sigma: F64 = column("")  # (T,) mm, uncertainty of the distance without that of the size; NaN where unknown
    measured_by: U8 = column("", (_J,), "u1")  # (T, 17) bits of `pose.structures.types.SENSORS`
    height_sigma: float = 0.0  # standard deviation of the height, m
    # shortest interval that holds the height with a probability of 68 %, m
    height_interval: tuple[float, float] = (0.0, 0.0)
    height_given: bool = False  # whether the height was given or measured instead of estimated from the scene
    # standard deviation of the logarithm of a size and distance that depth images measured; 0 without
    size_sigma: float = 0.0
    cutoffs: Cutoffs | None = None  # cut-off frequencies of the smoothing; None without smoothing


def distance_scale(work: Work, size: PersonSize) -> float:
    """Return the factor on the lifted distance; depth images know the distance better than the scene does."""
    return 1.0 if work.size_sigma else size.distance_scale


def resized(work: Work, size: PersonSize) -> Work:
    """Return the person at the estimated (not a given) size and distance, with uncertainties scaled."""
    height = work.height if work.height_given else size.height
    scale = scale_to(height, work.height)
    low, high = (work.height, work.height) if work.height_given else size.interval
    far, far_sigma = distance_scale(work, size), work.size_sigma or size.distance_sigma
    root = far * work.root
    return replace(
        work,
        joints=scale * work.joints,
        root=root,
        lifted=scale * (work.lifted - work.lifted[:, :1]) + far * work.lifted[:, :1],
        bones=scale * work.bones,
        root_sigma=np.hypot(far * work.root_sigma, 1000 * far_sigma * np.linalg.norm(root, axis=1)),
        height=height,
        height_sigma=(high - low) / 2,
        height_interval=(low, high),
    )
