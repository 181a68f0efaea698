"""Calibration of limb lengths in motion capture, so that standing people have straight knees.

The bones of the CMU skeletons are slightly too long for the recorded hips and ankles. The knees of many people are
therefore never flexed by less than 15 to 20 degrees, even in standing, and left and right differ by as much. A leg
length that is 1 % too long changes the knee of a standing person by 18 degrees. Limb lengths are therefore estimated
from the largest reach: the distance between the ends of a limb.

Calibration is separate for each skeleton of a subject. All frames of a skeleton get the same bone lengths. Knees and
elbows move within the plane of their limb; its ends do not move, except as described in the last item.

- The largest reach of a clip is the 95th percentile over its frames. That of a skeleton is the 90th percentile over its
  clips, weighted by frames. It is assumed to have a flexion of 3 degrees at the knee and 5 at the elbow.
- The reach of a person who never straightens the limb does not determine its length. The smaller the reach, the larger
  the weight of a prior: the typical length error of other skeletons. The weight is that of the side with the larger
  reach.
- The ratio of thigh to shank, and of upper arm to forearm, is equal on both sides. The total length follows the reach
  of each side, with a limited difference. One length for both sides would not fit: the recorded reaches differ by up to
  2 %, which corresponds to 20 degrees of flexion.
- Where the recorded ends are farther apart than the limb is long, the far end moves towards the near one. The
  transition starts at 6 degrees of flexion, so that the knee moves smoothly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.two_bones import place_middle, reach
from pose.structures.types import F64
from pose_datasets.bodies import pelvis_frame, thorax_frame, to_bones
from pose_datasets.vectors import cross, dot, norm


@dataclass(frozen=True, slots=True)
class Limb:
    """Parameters of the calibration of arms or legs."""

    # A factor is the ratio of the calibrated to the recorded length. The weight of a factor from the largest distance
    # of the ends is 1/e if it is `reach_weight_width` below `prior_factor`, that of a limb that is never straight.

    joints: tuple[tuple[int, int, int], tuple[int, int, int]]  # indices of the near end (hip or shoulder)
    flexion_at_max_reach_deg: float  # flexion assumed where the ends of the limb are farthest apart, degrees
    prior_factor: float  # factor for a skeleton whose limb is never straight
    reach_weight_width: float  # scale for the weight of a factor estimated from the largest distance of the ends
    min_factor: float  # minimum factor
    max_side_difference: float  # maximum difference of the factors of the left and the right limb


LEGS = Limb(
    ((4, 5, 6), (1, 2, 3)),
    flexion_at_max_reach_deg=3.0,
    prior_factor=0.992,
    reach_weight_width=0.02,
    min_factor=0.97,
    max_side_difference=0.025,
)
ARMS = Limb(
    ((11, 12, 13), (14, 15, 16)),
    flexion_at_max_reach_deg=5.0,
    prior_factor=0.985,
    reach_weight_width=0.025,
    min_factor=0.965,
    max_side_difference=0.02,
)

_REACH_FRAMES_PERCENTILE, _REACH_CLIPS_PERCENTILE = 95, 90
_MAX_BONE_DIFFERENCE_M = 0.001  # bones of one skeleton between clips


def flexion(points: F64, joints: tuple[int, int, int]) -> F64:
    """Return the flexion (T,) in degrees of a knee or elbow of points (T, J, 3); 0 is straight."""
    first, second = points[:, joints[1]] - points[:, joints[0]], points[:, joints[2]] - points[:, joints[1]]
    return np.degrees(np.arctan2(norm(cross(first, second)), dot(first, second)))


def calibrate(clips: Sequence[NDArray[np.floating]]) -> list[F64]:
    """Return points (T, 19, 3) m of each clip of a subject with corrected lengths of arms and legs."""
    calibrated: list[F64] = [np.array(clip, np.float64) for clip in clips]
    for limb in (LEGS, ARMS):
        for body in _bodies(calibrated, limb):
            own = [calibrated[i] for i in body]
            for joints, lengths in zip(limb.joints, calibrated_lengths(own, limb), strict=True):
                for clip in own:
                    place_middle(clip, joints, lengths, _bending_direction(clip, joints))
    return calibrated


def calibrated_lengths(clips: Sequence[F64], limb: Limb) -> tuple[tuple[float, float], tuple[float, float]]:
    """Estimate the true lengths in m of a skeleton's upper and lower bones, left and right, from (T, 19, 3) m."""
    measured = np.array([np.median([_lengths(clip, joints) for clip in clips], axis=0) for joints in limb.joints])
    factor_from_reach = np.array(
        [_largest_reach(clips, joints) / reach(bones[0], bones[1], limb.flexion_at_max_reach_deg)
         for joints, bones in zip(limb.joints, measured, strict=True)]
    )  # fmt: skip
    lacking = max(limb.prior_factor - factor_from_reach.max(), 0) / limb.reach_weight_width
    factor = limb.prior_factor + np.exp(-(lacking**2)) * (np.minimum(factor_from_reach, 1) - limb.prior_factor)
    factor = np.maximum(factor, max(limb.min_factor, factor.max() - limb.max_side_difference))
    total = factor * measured.sum(axis=1)
    near = float(measured[:, 0].sum() / measured.sum())
    (left, right) = ((near * float(length), (1 - near) * float(length)) for length in total)
    return left, right


def _bending_direction(points: F64, joints: tuple[int, int, int]) -> F64:
    """Return the direction (T, 3) in which a straight limb bends: a knee forwards, an elbow backwards and down."""
    bones = to_bones(points.astype(np.float32))
    if joints in LEGS.joints:
        direction: F64 = cross(points[:, joints[2]] - points[:, joints[0]], pelvis_frame(bones)[..., 0])
        return direction
    chest = thorax_frame(bones)
    return -chest[..., 2] - 0.3 * chest[..., 1]


def _lengths(clip: F64, joints: tuple[int, int, int]) -> F64:
    """Return the median lengths (2,) m of the two bones of a limb."""
    bones = np.diff(clip[:, joints], axis=1)
    median: F64 = np.median(norm(bones), axis=0)
    return median


def _largest_reach(clips: Sequence[F64], joints: tuple[int, int, int]) -> float:
    """Return the largest reach in metres of a limb over the clips, as described for this module."""
    tops = [np.percentile(norm(clip[:, joints[2]] - clip[:, joints[0]]), _REACH_FRAMES_PERCENTILE)
            for clip in clips]  # fmt: skip
    frames = np.array([len(clip) for clip in clips])
    order = np.argsort(tops)
    share = np.cumsum(frames[order]) / frames.sum()
    return float(np.array(tops)[order][np.searchsorted(share, _REACH_CLIPS_PERCENTILE / 100)])


def _bodies(clips: Sequence[F64], limb: Limb) -> list[list[int]]:
    """Group the indices of clips by skeleton, i.e. by equal bone lengths of `limb`."""
    groups: list[tuple[F64, list[int]]] = []
    for i, clip in enumerate(clips):
        bones = np.concatenate([_lengths(clip, joints) for joints in limb.joints])
        for known, members in groups:
            if np.abs(known - bones).max() < _MAX_BONE_DIFFERENCE_M:
                members.append(i)
                break
        else:
            groups.append((bones, [i]))
    return [members for _, members in groups]
