"""Noise of 2D keypoints, estimated per joint of a track from lifted joints and from differences over time.

The distance between projected lifted joints and keypoints has three parts: the error of the lifter across the viewing
direction, jitter of the keypoints, and lasting errors of the keypoints. Third differences over time isolate the jitter,
because motion hardly contributes to them. Lasting errors are the remainder beyond the usual error of the lifter.
Neighbouring frames do not average them out, so they count at least three times in the noise.
"""

import numpy as np

from pose.structures.skeletons import H36M17
from pose.structures.types import F64, Flags

# Median distance of lifted joints from exact keypoints, across the viewing direction, m (on validation subjects).
_LIFTER_ERROR_M = 0.010
_MIN_NOISE_M = 0.006  # m, standard deviation for exact keypoints, because knots are 0.1 s apart
_BIAS_FACTOR = 3.0  # factor of lasting errors, which successive frames repeat
# m; lasting errors above this value count even more, since the lifter has used the same keypoints. The second value is
# for detectors, whose hips and shoulders differ from those of Human3.6M.
_BIAS_SCALE_M, _BIAS_SCALE_DERIVED_M = 0.03, 0.02
_MEDIAN_PER_SIGMA = 1.177  # median distance in two dimensions, in standard deviations of a coordinate
_DIFFERENCE_SIGMA = np.sqrt(20.0)  # standard deviation of the third difference of independent unit values
_JOINT_WEIGHT = 0.5  # weight of a joint's own variance relative to that of all limb joints
_UNDETECTED_M = 1.0  # m, for joints that are never detected
_TRUNK = [H36M17.index(name) for name in ("pelvis", "spine", "thorax", "neck", "head")]
_LIMBS = [joint for joint in range(len(H36M17)) if joint not in _TRUNK]


def noise_of(residual: F64, detected: Flags, derived: bool = False) -> F64:
    """Return the noise (17,) m of one track's 2D keypoints in x, and in y, from residuals (T, 17, 2) m."""
    distance = np.where(detected, np.linalg.norm(residual, axis=-1), np.nan)
    total = _spread(distance)
    steps = np.diff(np.where(detected[..., None], residual, np.nan), n=3, axis=0)
    jitter = np.minimum(_spread(np.linalg.norm(steps, axis=-1) / _DIFFERENCE_SIGMA), total)
    bias = np.sqrt(np.maximum(total**2 - jitter**2 - (_LIFTER_ERROR_M / _MEDIAN_PER_SIGMA) ** 2, 0))
    bias *= _BIAS_FACTOR * (1 + (bias / (_BIAS_SCALE_DERIVED_M if derived else _BIAS_SCALE_M)) ** 4)
    noise: F64 = np.sqrt(_MIN_NOISE_M**2 + bias**2 + jitter**2)
    return noise


def _spread(distance: F64) -> F64:
    """Estimate standard deviations (17,), mixed with that of limb joints, from distances (T, 17), NaN undetected."""
    limbs = distance[:, _LIMBS]
    track = float(np.median(limbs[np.isfinite(limbs)])) if np.isfinite(limbs).any() else _UNDETECTED_M
    own = np.full(distance.shape[1], track)
    for joint, column in enumerate(distance.T):
        distances = column[np.isfinite(column)]
        if len(distances):
            own[joint] = np.median(distances)
    spread: F64 = np.sqrt(_JOINT_WEIGHT * own**2 + (1 - _JOINT_WEIGHT) * track**2) / _MEDIAN_PER_SIGMA
    return spread
