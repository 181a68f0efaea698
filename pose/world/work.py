"""A person between the steps that need no world and those that do."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pose.world.height import scaled_stature
from pose.world.rules import RULES, SizeRules
from pose.world.sizes import Size

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Work:
    """One person, T frames, filled ones included, in the camera frame.

    times: (T,) s. joints: (T, 17, 3) m relative to the pelvis. root: (T, 3) m. sigma: (T, 17) mm. lifted: (T, 17, 3) m,
    where the joints were; NaN in filled frames. feet_seen: (T, 2), whether the image shows the left and the right
    ankle. visible: (T,), whether it shows the person fully. filled: (T,). inconsistent: (T, 4), limbs whose 2D
    contradicts the bones. root_sigma: (T,) mm, of the distance, without
    the uncertainty of the size; NaN where it is not known. bones: (16,) m. height: m. height_sigma: m. given: whether
    the height was given.
    """

    times: F64
    joints: F64
    root: F64
    sigma: F64
    lifted: F64
    feet_seen: Mask
    visible: Mask
    filled: Mask
    inconsistent: Mask
    root_sigma: F64
    bones: F64
    height: float
    height_sigma: float = 0.0
    given: bool = False


def resized(work: Work, size: Size, rules: SizeRules = RULES.size) -> Work:
    """The person at another scale: pose, distance and their uncertainties."""
    scale, height = size.scale, scaled_stature(work.height, size.scale, rules)
    if work.given:
        scale, height = 1.0, work.height
    root = scale * work.root
    return replace(
        work,
        joints=scale * work.joints,
        root=root,
        lifted=scale * work.lifted,
        bones=scale * work.bones,
        root_sigma=np.hypot(scale * work.root_sigma, 1000 * size.sigma * np.linalg.norm(root, axis=1)),
        height=height,
        height_sigma=height * size.sigma,
    )
