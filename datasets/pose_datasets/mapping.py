"""Conversion of motion capture skeletons (ASF/AMC and BVH) to the 19 points of the training data.

The points are the 17 Human3.6M joints, the nose and the midpoint of the ears. Detectors find the last two, and
Human3.6M does not contain them. World frame: metres, y up, floor near y = 0.

| point | ASF/AMC: far ends of bones | BVH for MotionBuilder | BVH for Daz |
|---|---|---|---|
| pelvis | midpoint of the hips | same | same |
| hips, knees, ankles | hipjoint, femur, tibia | UpLeg, Leg, Foot (or Hip, Knee, Ankle) | Thigh, Shin, Foot |
| spine: middle of the trunk | 0.8 lowerback + 0.2 upperback | 0.8 Spine + 0.2 Spine1 | midpoint of abdomen and chest |
| thorax: between collar bones and neck | midpoint of thorax and lowerneck | midpoint of collars and Neck1 | same |
| shoulders, elbows | clavicle, humerus | Arm, ForeArm | Shldr, ForeArm |
| wrists | wrist | line from ForeArm to Hand, extended by half | Hand |
| neck / nose, head, nose, ears | in the frame of the head | same | same |

The head is rigid: its four points have constant positions in the frame of the head bone (`HEAD_POINTS`), which are
scaled with the length of this bone. The head of the Daz figure is not scaled.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pose.errors import PoseError
from pose.structures.skeletons import H36M_NAMES
from pose.structures.types import F64
from pose_datasets import asf_amc, bvh

POINTS = (*H36M_NAMES, "nose", "ears")
NOSE, EARS = 17, 18

# Positions of head points from the base of the skull, m, for an adult whose head bone (base of the skull to the
# middle of the head in the CMU skeletons) is 0.0875 m: x to the left, y up, z forward.
HEAD_BONE = 0.0875
HEAD_POINTS = {
    "neck": (0.0, 0.015, 0.03),
    "head": (0.0, 0.13, 0.0),
    "nose": (0.0, 0.035, 0.115),
    "ears": (0.0, 0.05, 0.01),
}

_UNITS = (1.0, 0.01, 0.001, asf_amc.INCH, asf_amc.INCH / 0.45)  # metres per unit; the last is that of the CMU files
_SIDES = ("left", "right")


def asf_points(skeleton: asf_amc.AsfSkeleton, motion: dict[str, F64], source: str) -> F64:
    """Return the body points (T, 19, 3) m (world, y up) of a motion of the CMU database from ASF/AMC files."""
    ends, turns = asf_amc.forward_kinematics(skeleton, motion)
    index = _finder(skeleton.names, source)

    def end(name: str) -> F64:
        return ends[:, index(name)]

    points = {
        "spine": 0.8 * end("lowerback") + 0.2 * end("upperback"),
        "thorax": (end("thorax") + end("lowerneck")) / 2,
    }
    for side in _SIDES:
        points |= {f"{side}_{joint}": end(side[0] + bone) for joint, bone in _ASF_LIMBS.items()}
    size = float(np.linalg.norm(skeleton.offsets[index("head")])) / HEAD_BONE
    return assemble_points(points, end("upperneck"), turns[:, index("head")], size)


_ASF_LIMBS = {
    "hip": "hipjoint", "knee": "femur", "ankle": "tibia", "shoulder": "clavicle", "elbow": "humerus", "wrist": "wrist",
}  # fmt: skip


def bvh_points(motion: bvh.BvhMotion, source: str) -> F64:
    """Return the body points (T, 19, 3) m (world, y up) of a CMU motion from one of its BVH conversions."""
    style = next((style for style in _BVH_STYLES if set(style.values()) <= set(motion.names)), None)
    if style is None:
        raise PoseError(
            f"{source}: the joint names are not those of a known conversion of the CMU database, "
            "which are for MotionBuilder and Daz Studio"
        )
    index = {role: motion.names.index(name) for role, name in style.items()}
    if "left_radius" in index:
        motion = _restore_lost_bones(motion, index)
    positions, turns = bvh.forward_kinematics(motion)
    metres = _unit(motion, index)
    positions = positions * metres

    def at(role: str) -> F64:
        return positions[:, index[role]]

    share = 0.2 if "left_radius" in index else 0.5
    points = {role: at(role) for role in style if role.split("_")[-1] in _ASF_LIMBS}
    if "left_radius" in index:  # the wrist bone is lost as well; it continues straight for half the radius
        points |= {f"{side}_wrist": 1.5 * at(f"{side}_radius") - 0.5 * at(f"{side}_elbow") for side in _SIDES}
    points["spine"] = (1 - share) * at("lower_spine") + share * at("upper_spine")
    points["thorax"] = (at("left_collar") + at("right_collar") + 2 * at("neck")) / 4
    # Skeletons of the CMU kind split the neck and head into three bones of one length; the Daz figure is an adult.
    size = float(np.linalg.norm(motion.offsets[index["head"]])) * metres / HEAD_BONE if share == 0.2 else 1.0
    return assemble_points(points, at("head"), turns[:, index["head"]], size)


def _style(limbs: dict[str, str], middle: dict[str, str], sides: tuple[str, str]) -> dict[str, str]:
    """Return a conversion's joint names by role such as "left_hip"; `{}` stands for the prefix of the side."""
    return middle | {
        f"{side}_{role}": joint.format(prefix)
        for side, prefix in zip(("left", "right"), sides, strict=True)
        for role, joint in limbs.items()
    }


# Role -> joint in known conversions: two for MotionBuilder, and one for the figure of Daz Studio.
_BVH_STYLES = (
    _style(
        {
            "hip": "{}UpLeg", "knee": "{}Leg", "ankle": "{}Foot", "collar": "{}Shoulder", "shoulder": "{}Arm",
            "elbow": "{}ForeArm", "radius": "{}Hand",
        },
        {"lower_spine": "Spine", "upper_spine": "Spine1", "neck_root": "Neck", "neck": "Neck1", "head": "Head"},
        ("Left", "Right"),
    ),
    _style(
        {
            "hip": "{}Hip", "knee": "{}Knee", "ankle": "{}Ankle", "collar": "{}Collar", "shoulder": "{}Shoulder",
            "elbow": "{}Elbow", "radius": "{}Wrist",
        },
        {
            "lower_spine": "Chest", "upper_spine": "Chest2", "neck_root": "lowerneck", "neck": "Neck", "head": "Head",
        },
        ("Left", "Right"),
    ),
    _style(
        {
            "hip": "{}Thigh", "knee": "{}Shin", "ankle": "{}Foot", "collar": "{}Collar", "shoulder": "{}Shldr",
            "elbow": "{}ForeArm", "wrist": "{}Hand",
        },
        {"lower_spine": "abdomen", "upper_spine": "chest", "neck": "neck", "head": "head"},
        ("l", "r"),
    ),
)  # fmt: skip


def _restore_lost_bones(motion: bvh.BvhMotion, index: dict[str, int]) -> bvh.BvhMotion:
    """Restore the bones from the upper back to the base of the neck and to the collar bones."""
    # These bones have no length in the MotionBuilder conversions. In the original skeletons, they are as long as the
    # upper back and continue in its direction. (Subjects 35 and 131 are available in both formats.)
    offsets = motion.offsets.copy()
    for role in ("neck_root", "left_collar", "right_collar"):
        offsets[index[role]] = motion.offsets[index["upper_spine"]]
    return replace(motion, offsets=offsets)


def _unit(motion: bvh.BvhMotion, index: dict[str, int]) -> float:
    """Return the metres per unit of a file: the known unit with a distance from ankle to head closest to 1.6 m."""
    height = 0.0
    for role in ("left_ankle", "head"):
        joint = index[role]
        while joint > 0:
            height += float(np.linalg.norm(motion.offsets[joint]))
            joint = motion.parents[joint]
    return min(_UNITS, key=lambda unit: abs(math.log(unit * height / 1.6)))


def _finder(names: tuple[str, ...], source: str) -> Callable[[str], int]:
    """Return a function that finds the index of a bone by name. It raises `PoseError` for unknown names."""

    def find(name: str) -> int:
        if name not in names:
            raise PoseError(f"{source}: the skeleton has no {name!r}; expected one of the CMU database")
        return names.index(name)

    return find


def assemble_points(points: dict[str, F64], skull: F64, head_turn: F64, head_size: float) -> F64:
    """Add pelvis and four head points to the other 14, and return points (T, 19, 3) m in the order of `POINTS`."""
    # `head_turn` (T, 3, 3) rotates from the frame of the head (x left, y up, z forward) to the world frame.
    points = points | {name: skull + head_turn @ (np.array(place) * head_size) for name, place in HEAD_POINTS.items()}
    points["pelvis"] = (points["left_hip"] + points["right_hip"]) / 2
    return np.stack([points[name] for name in POINTS], axis=1)
