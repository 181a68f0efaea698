"""Calibration of limb lengths in motion capture, so that standing people have straight knees.

The bones of the CMU skeletons are slightly too long for the recorded hips and ankles: many people never have less than
15 to 20 degrees of knee flexion, even in standing, and left and right differ by as much. One per cent of a leg's length
is 18 degrees at the knee. The length of a limb is therefore estimated from its largest reach.

A body is one skeleton of one subject. Hips, ankles, shoulders and wrists are unchanged; knees and elbows move in the
plane of their limb, and bone lengths change by the same factor in all frames of a body.

- Reach: the 95th percentile of the distance of a limb's ends in a clip, and of those the 90th over the body's clips
  (weighted by frames). It is assumed to correspond to a flexion of 3 degrees at the knee and 5 at the elbow.
- A person who never straightens the limb gives no evidence of its length: the smaller the reach, the larger the weight
  of a prior (the typical excess length of other bodies). The side with the larger reach counts for both.
- Thigh and shank, and upper arm and forearm, have the same ratio on both sides. Their sum follows the reach of each
  side, within the anatomical differences of sides: the recorded ends differ by up to 2 % between the sides, which
  would be 20 degrees with one length for both.
- Where recorded ends are farther apart than the limb is long, the far end is moved by the difference. This starts
  gradually below 6 degrees, so that the knee moves smoothly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.two_bones import place_middle, reach
from pose_datasets.bodies import pelvis_frame, thorax_frame, to_bones
from pose_datasets.vectors import cross, dot, norm

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Limb:
    """Parameters of a kind of limb.

    Attributes:
        joints: (end, middle, end) of the left and of the right side.
        straightest: Flexion at full reach, degrees.
        prior: Factor of the bone lengths for a body that never straightens the limb.
        trust: Difference to `prior` at which the weight of a body's evidence has decayed to 1/e.
        least: Smallest factor.
        apart: Largest difference of the sides' factors.
    """

    joints: tuple[tuple[int, int, int], tuple[int, int, int]]
    straightest: float
    prior: float
    trust: float
    least: float
    apart: float


LEGS = Limb(((4, 5, 6), (1, 2, 3)), straightest=3.0, prior=0.992, trust=0.02, least=0.97, apart=0.025)
ARMS = Limb(((11, 12, 13), (14, 15, 16)), straightest=5.0, prior=0.985, trust=0.025, least=0.965, apart=0.02)

_STRAIGHTEST_FRAMES, _STRAIGHTEST_CLIPS = 95, 90  # percentiles
_SAME = 0.001  # m, maximum difference of bones of one skeleton between clips


def flexion(points: F64, joints: tuple[int, int, int]) -> F64:
    """Compute the flexion (T,) of a limb in degrees; 0 is straight.

    Args:
        points: (T, J, 3) m.
        joints: Indices of the end, middle and other end of the limb.
    """
    first, second = points[:, joints[1]] - points[:, joints[0]], points[:, joints[2]] - points[:, joints[1]]
    return np.degrees(np.arctan2(norm(cross(first, second)), dot(first, second)))


def calibrate(clips: Sequence[NDArray[np.floating]]) -> list[F64]:
    """Calibrate the limb lengths in all clips of one subject, (T, 19, 3) m each."""
    calibrated: list[F64] = [np.array(clip, np.float64) for clip in clips]
    for limb in (LEGS, ARMS):
        for body in _bodies(calibrated, limb):
            own = [calibrated[i] for i in body]
            for joints, lengths in zip(limb.joints, calibrated_lengths(own, limb), strict=True):
                for clip in own:
                    place_middle(clip, joints, lengths, _usual_bend(clip, joints))
    return calibrated


def calibrated_lengths(clips: Sequence[F64], limb: Limb) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the (near, far) bone lengths in metres of the left and of the right limb, for clips of one body."""
    measured = np.array([np.median([_lengths(clip, joints) for clip in clips], axis=0) for joints in limb.joints])
    evidence = np.array(
        [_straightest(clips, joints) / reach(bones[0], bones[1], limb.straightest)
         for joints, bones in zip(limb.joints, measured, strict=True)]
    )  # fmt: skip
    lacking = max(limb.prior - evidence.max(), 0) / limb.trust
    factor = limb.prior + np.exp(-(lacking**2)) * (np.minimum(evidence, 1) - limb.prior)
    factor = np.maximum(factor, max(limb.least, factor.max() - limb.apart))
    total = factor * measured.sum(axis=1)
    near = float(measured[:, 0].sum() / measured.sum())
    (left, right) = ((near * float(length), (1 - near) * float(length)) for length in total)
    return left, right


def _usual_bend(points: F64, joints: tuple[int, int, int]) -> F64:
    """Bending direction (T, 3) of a straight limb: a knee forwards, an elbow backwards and down."""
    bones = to_bones(points.astype(np.float32))
    if joints in LEGS.joints:
        usual: F64 = cross(points[:, joints[2]] - points[:, joints[0]], pelvis_frame(bones)[..., 0])
        return usual
    chest = thorax_frame(bones)
    return -chest[..., 2] - 0.3 * chest[..., 1]


def _lengths(clip: F64, joints: tuple[int, int, int]) -> F64:
    bones = np.diff(clip[:, joints], axis=1)
    median: F64 = np.median(norm(bones), axis=0)
    return median


def _straightest(clips: Sequence[F64], joints: tuple[int, int, int]) -> float:
    tops = [np.percentile(norm(clip[:, joints[2]] - clip[:, joints[0]]), _STRAIGHTEST_FRAMES)
            for clip in clips]  # fmt: skip
    frames = np.array([len(clip) for clip in clips])
    order = np.argsort(tops)
    share = np.cumsum(frames[order]) / frames.sum()
    return float(np.array(tops)[order][np.searchsorted(share, _STRAIGHTEST_CLIPS / 100)])


def _bodies(clips: Sequence[F64], limb: Limb) -> list[list[int]]:
    """Group the indices of clips by skeleton, i.e. by equal bone lengths of `limb`."""
    groups: list[tuple[F64, list[int]]] = []
    for i, clip in enumerate(clips):
        bones = np.concatenate([_lengths(clip, joints) for joints in limb.joints])
        for known, members in groups:
            if np.abs(known - bones).max() < _SAME:
                members.append(i)
                break
        else:
            groups.append((bones, [i]))
    return [members for _, members in groups]
