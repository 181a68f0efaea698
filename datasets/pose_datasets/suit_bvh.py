"""BVH files of suits and animation programs: joints of Human3.6M-17 by the usual names of bones.

The CMU conversions and those of SNU have readers of their own (`mapping`, `snu`), with better head and trunk points.
"""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np

from pose.errors import PoseError
from pose.structures.skeletons import H36M17
from pose.structures.types import F64
from pose.utils.json_values import read_text_file
from pose_datasets import bvh

MAX_FILE_BYTES = 1_000_000_000
_SIDES = {"left": ("left", "l"), "right": ("right", "r")}
# Names without the side, spaces and punctuation, in lower case. The joint is where the bone of this name begins.
_LIMBS = {
    "hip": ("upleg", "thigh", "hip", "upperleg", "femur"),
    "knee": ("leg", "shin", "knee", "lowerleg", "calf", "lowleg"),
    "ankle": ("foot", "ankle"),
    "shoulder": ("arm", "uparm", "shldr", "upperarm", "shoulder"),
    "elbow": ("forearm", "elbow", "lowerarm", "lowarm"),
    "wrist": ("hand", "wrist"),
}
_TRUNK = ("spine", "chest", "abdomen", "lowerback", "torso", "upperchest", "thorax")
_UNITS_M = {"m": 1.0, "cm": 0.01, "mm": 0.001, "in": 0.0254}
_LEG_M = 0.82  # of an adult, hip to ankle
_NECK_M, _HEAD_M = 0.03, 0.13  # of the neck and the middle of the head above the origin of the head bone, along it


def read_suit_bvh(path: Path) -> tuple[F64, F64]:
    """Read times (T,) s and joints (T, 17, 3) m, y up, of a BVH file.

    The unit is that of m, cm, mm and inches with which a leg has the length closest to an adult's.

    Raises:
        PoseError: If the file is damaged, or bones of the arms or legs are missing.
    """
    source = str(path)
    text = read_text_file(path, MAX_FILE_BYTES).decode("utf-8-sig", errors="replace")
    motion = bvh.parse_bvh(text, source)
    positions, _ = bvh.forward_kinematics(motion)
    names = [re.sub(r"[^a-z0-9]", "", name.lower().rpartition(":")[2]) for name in motion.names]
    points = {
        f"{side}_{joint}": positions[:, _find(names, prefixes, options, f"{side} {joint}", source)]
        for side, prefixes in _SIDES.items()
        for joint, options in _LIMBS.items()
    }
    head = next((at for at, name in enumerate(names) if name.endswith("head")), None)
    if head is None:
        raise PoseError(f"{source}: no bone is named head")
    points["pelvis"] = (points["left_hip"] + points["right_hip"]) / 2
    middle = (points["left_shoulder"] + points["right_shoulder"]) / 2
    trunk = [at for at, name in enumerate(names) if name.rstrip("0123456789") in _TRUNK and at < head]
    points["thorax"] = _neck_base(motion, positions, head, middle)
    centre = (points["pelvis"] + points["thorax"]) / 2
    off = [float(np.linalg.norm(positions[0, at] - centre[0])) for at in trunk]
    points["spine"] = positions[:, trunk[int(np.argmin(off))]] if trunk else centre
    metres = _unit(points)
    up = positions[:, head] - points["thorax"]
    up /= np.maximum(np.linalg.norm(up, axis=-1, keepdims=True), 1e-9)
    points["neck"] = positions[:, head] + _NECK_M / metres * up
    points["head"] = positions[:, head] + _HEAD_M / metres * up
    joints = np.stack([points[name] for name in H36M17.names], axis=1) * metres
    return np.arange(len(joints)) / motion.fps, joints


def _find(names: list[str], prefixes: tuple[str, ...], options: tuple[str, ...], what: str, source: str) -> int:
    """Return the index of the bone of one side; a collar bone is also often called shoulder, so arms come first."""
    for option in options:
        for prefix in prefixes:
            for name in (prefix + option, option + prefix):
                if name in names:
                    return names.index(name)
    raise PoseError(f"{source}: no bone for the {what}; expected names such as {prefixes[0]}{options[0]}")


def _neck_base(motion: bvh.BvhMotion, positions: F64, head: int, middle: F64) -> F64:
    """Return the base of the neck: the origin of the last bone before the head that is not at the head, or between."""
    parent = motion.parents[head]
    if parent >= 0 and np.linalg.norm(motion.offsets[head]) > 0:
        neck: F64 = positions[:, parent]
        return neck
    return 0.7 * middle + 0.3 * positions[:, head]


def _unit(points: dict[str, F64]) -> float:
    """Return the metres per unit of the file."""
    chain = ("left_hip", "left_knee", "left_ankle")
    leg = sum(float(np.linalg.norm(points[b][0] - points[a][0])) for a, b in pairwise(chain))
    return min(_UNITS_M.values(), key=lambda unit: abs(np.log(max(leg, 1e-9) * unit / _LEG_M)))
