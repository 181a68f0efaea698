"""How far 2D keypoints are off, estimated for each joint of a track from the lifter's answer and from time alone.

The distance between projected lifted joints and the 2D that was lifted holds three parts: the lifter's own error across
the view, what trembles from frame to frame, and what lasts. Third differences over time show the second by itself
(motion hardly has any). What lasts is the rest beyond the lifter's usual error. It is not averaged away by neighbouring
frames, so it counts more than what trembles.
"""

import numpy as np

from pose.skeletons import H36M17
from pose.types import F64, Flags

_LIFTED = 0.010  # m, median distance of the lifter's joints from exact 2D, across the view (validation subjects)
_EXACT = 0.006  # m, standard deviation of exact 2D: knots are a tenth of a second apart
_LASTING = 3.0  # by which what lasts counts more, as successive frames repeat it
# m; what lasts and is larger counts more still: the lifter, which saw it, knows better. A detector's hips and shoulders
# are not quite those of Human3.6M besides.
_WRONG, _WRONG_DERIVED = 0.03, 0.02
_MEDIAN = 1.177  # of the distance in two dimensions, in standard deviations of each
_DIFFERENCE = np.sqrt(20.0)  # standard deviations of a third difference of independent values
_OWN = 0.5  # weight of a joint's own variance against that of all limb joints
_NONE = 1.0  # m, where nothing is seen
_TRUNK = [H36M17.index(name) for name in ("pelvis", "spine", "thorax", "neck", "head")]
_LIMBS = [joint for joint in range(len(H36M17)) if joint not in _TRUNK]


def noise_of(off: F64, seen: Flags, derived: bool = False) -> F64:
    """Standard deviation (17,) m of each coordinate of the 2D of one track.

    Args:
        off: (T, 17, 2) m, 2D minus projected lifted joints, at the depth of the body.
        seen: (T, 17), which of them count.
        derived: whether it is a detector's skeleton (`pose.skeletons`).
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
    """(17,) standard deviations from distances (T, 17), NaN where not seen: of each joint and of all limb joints."""
    limbs = distance[:, _LIMBS]
    track = float(np.median(limbs[np.isfinite(limbs)])) if np.isfinite(limbs).any() else _NONE
    own = np.full(distance.shape[1], track)
    for joint, column in enumerate(distance.T):
        found = column[np.isfinite(column)]
        if len(found):
            own[joint] = np.median(found)
    spread: F64 = np.sqrt(_OWN * own**2 + (1 - _OWN) * track**2) / _MEDIAN
    return spread
