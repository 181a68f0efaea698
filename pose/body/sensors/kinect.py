"""Skeletons of the Kinect v2 in the text files of UI-PRMD.

A recording is a pair of files, `..._positions.txt` and `..._angles.txt`, with 22 x 3 numbers a frame. The first joint
has its position in the axes of the camera (cm; x to the person's left, y up, z towards the camera), every other one
its position in the axes of its parent. The rotation of a joint relative to its parent is R = Rz Rx Ry, in degrees:
only with this order, and with these parents, do feet on the floor stay still. Vakanski et al., Data 3(1):2, 2018.
"""

from pathlib import Path

import numpy as np

from pose.body.sensors.recording import SensorSkeleton, arranged
from pose.errors import PoseError
from pose.structures.types import F64
from pose.utils.json_values import read_text_file
from pose.utils.point_rows import parse_point_rows

FPS = 30.0
MAX_FILE_BYTES = 100_000_000
NAMES = (
    "waist", "spine", "chest", "neck", "head", "tip", "left_collar", "left_upper_arm", "left_forearm", "left_hand",
    "right_collar", "right_upper_arm", "right_forearm", "right_hand", "left_upper_leg", "left_lower_leg", "left_foot",
    "left_toe", "right_upper_leg", "right_lower_leg", "right_foot", "right_toe",
)  # fmt: skip
PARENTS = (-1, 0, 1, 2, 3, 4, 2, 6, 7, 8, 2, 10, 11, 12, 0, 14, 15, 16, 0, 18, 19, 20)
_LIMBS = {
    "hip": "upper_leg", "knee": "lower_leg", "ankle": "foot",
    "shoulder": "upper_arm", "elbow": "forearm", "wrist": "hand",
}  # fmt: skip
_ROLES: dict[str, str | tuple[str, ...]] = {
    "pelvis": "waist", "spine": "spine", "thorax": "neck", "neck": "head", "head": "tip",
    **{f"{side}_{joint}": f"{side}_{name}" for side in ("left", "right") for joint, name in _LIMBS.items()},
}  # fmt: skip


def read_ui_prmd_kinect(path: Path) -> SensorSkeleton:
    """Read a file of positions, and that of angles beside it; PoseError if one is missing or damaged."""
    angles = path.with_name(path.name.replace("_positions", "_angles"))
    positions = read_text_file(path, MAX_FILE_BYTES)
    return parse_ui_prmd_kinect(_text(positions), _text(read_text_file(angles, MAX_FILE_BYTES)), str(path))


def _text(content: bytes) -> str:
    return content.decode("utf-8-sig", errors="replace")


def parse_ui_prmd_kinect(positions: str, angles: str, source: str) -> SensorSkeleton:
    """Parse the texts of the two files of a recording; `source` names it in messages."""
    offsets, turns = _table(positions, source), np.radians(_table(angles, source.replace("_positions", "_angles")))
    if len(offsets) != len(turns):
        raise PoseError(f"{source}: {len(offsets)} frames of positions, but {len(turns)} of angles")
    points = forward_kinematics(offsets, turns) / 100
    joints = arranged(list(NAMES), points, _ROLES, source)
    return SensorSkeleton.of(np.arange(len(joints)) / FPS, joints, None, "kinect", source)


def _table(text: str, source: str) -> F64:
    rows = parse_point_rows(text, len(NAMES), "joints", source)
    if not (np.abs(rows) < 1e5).all():
        raise PoseError(f"{source}: expected numbers below 1e5")
    return rows


def forward_kinematics(offsets: F64, turns: F64) -> F64:
    """Return positions (T, 22, 3) of offsets (T, 22, 3) and angles (T, 22, 3) rad about x, y and z, to the parents."""
    sine, cosine = np.sin(turns), np.cos(turns)
    (sx, sy, sz), (cx, cy, cz) = np.moveaxis(sine, -1, 0), np.moveaxis(cosine, -1, 0)
    local = np.stack(
        [
            cz * cy - sz * sx * sy, -sz * cx, cz * sy + sz * sx * cy,
            sz * cy + cz * sx * sy, cz * cx, sz * sy - cz * sx * cy,
            -cx * sy, sx, cx * cy,
        ],
        axis=-1,
    ).reshape(*turns.shape, 3)  # fmt: skip
    points, turned = offsets.copy(), local.copy()
    for joint, parent in enumerate(PARENTS):
        if parent >= 0:
            points[:, joint] = points[:, parent] + np.einsum("tij,tj->ti", turned[:, parent], offsets[:, joint])
            turned[:, joint] = turned[:, parent] @ local[:, joint]
    return points
