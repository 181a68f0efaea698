"""Noise of 2D keypoints, estimated per joint of a track from lifted joints and from differences over time.

The distance between projected lifted joints and keypoints has three parts: the error of the lifter across the viewing
direction, jitter of the keypoints, and lasting errors of the keypoints. Third differences over time isolate the jitter,
because motion hardly contributes to them. Lasting errors are the remainder beyond the usual error of the lifter.
Neighbouring frames do not average them out, so they count at least three times in the noise.
"""

import numpy as np

from pose.skeletons import H36M17
from pose.types import F64, Flags

# Median distance of lifted joints from exact keypoints, across the viewing direction, m (on validation subjects).
_LIFTED = 0.010
_EXACT = 0.006  # m, standard deviation for exact keypoints, because knots are 0.1 s apart
_LASTING = 3.0  # factor of lasting errors, which successive frames repeat
# m; lasting errors above this value count even more, since the lifter has used the same keypoints. The second value is
# for detectors, whose hips and shoulders differ from those of Human3.6M.
_WRONG, _WRONG_DERIVED = 0.03, 0.02
_MEDIAN = 1.177  # median distance in two dimensions, in standard deviations of a coordinate
_DIFFERENCE = np.sqrt(20.0)  # standard deviation of the third difference of independent unit values
_OWN = 0.5  # weight of a joint's own variance relative to that of all limb joints
_NONE = 1.0  # m, for joints that are never detected
_TRUNK = [H36M17.index(name) for name in ("pelvis", "spine", "thorax", "neck", "head")]
_LIMBS = [joint for joint in range(len(H36M17)) if joint not in _TRUNK]


def noise_of(off: F64, seen: Flags, derived: bool = False) -> F64:
    """Estimate the standard deviation (17,) m of each coordinate of one track's 2D keypoints, at the body's depth.

    Args:
        off: (T, 17, 2) m, keypoints minus projected lifted joints, at the depth of the body.
        seen: (T, 17) bool, whether each joint is detected.
        derived: Whether the joints are converted from a detector's skeleton (`pose.skeletons`).
    """
    distance = np.where(seen, np.linalg.norm(off, axis=-1), np.nan)
    whole = _spread(distance)
    steps = np.diff(np.where(seen[..., None], off, np.nan), n=3, axis=0)
    shaking = np.minimum(_spread(np.linalg.norm(steps, axis=-1) / _DIFFERENCE), whole)
    lasting = np.sqrt(np.maximum(whole**2 - shaking**2 - (_LIFTED / _MEDIAN) ** 2, 0))
    lasting *= _LASTING * (1 + (lasting / (_WRONG_DERIVED if derived else _WRONG)) ** 4)
    noise: F64 = np.sqrt(_EXACT**2 + lasting**2 + shaking**2)
    return noise


def _spread(distance: F64) -> F64:
    """Estimate standard deviations (17,) from distances (T, 17), which are NaN where not detected.

    The estimate of each joint is a mixture of its own distances and those of all limb joints.
    """
    limbs = distance[:, _LIMBS]
    track = float(np.median(limbs[np.isfinite(limbs)])) if np.isfinite(limbs).any() else _NONE
    own = np.full(distance.shape[1], track)
    for joint, column in enumerate(distance.T):
        found = column[np.isfinite(column)]
        if len(found):
            own[joint] = np.median(found)
    spread: F64 = np.sqrt(_OWN * own**2 + (1 - _OWN) * track**2) / _MEDIAN
    return spread
