"""Intermediate data of a person between the steps without a world and the steps with one."""

from dataclasses import dataclass, replace

import numpy as np

from pose.structures.columns import column
from pose.structures.skeletons import H36M17, LIMBS
from pose.structures.types import F64, U8, Flags
from pose.world.cutoffs import Cutoffs
from pose.world.height import PersonSize, scale_to

_J = len(H36M17)


@dataclass(frozen=True, slots=True)
class Work:
    """One person in T frames, including filled ones, in the axes of the camera or of its path.

    Numbers are float64 in memory; temporary files have the declared types.
    """

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
