# SPDX-License-Identifier: GPL-3.0-or-later
"""The rigid skeleton of results: bone lengths and rotations from joint positions, without Blender.

Axes: y up, right-handed; in the T-pose x is the person's left and z forward, and all rotations are the identity.
"""

import numpy as np

JOINTS = (
    "pelvis",
    "right_hip",
    "right_knee",
    "right_ankle",
    "left_hip",
    "left_knee",
    "left_ankle",
    "spine",
    "thorax",
    "neck",
    "head",
    "left_shoulder",
    "left_elbow",
    "left_wrist",
    "right_shoulder",
    "right_elbow",
    "right_wrist",
)
NAMES = (
    "pelvis",
    "left_hip",
    "left_knee",
    "left_ankle",
    "right_hip",
    "right_knee",
    "right_ankle",
    "spine",
    "thorax",
    "neck",
    "head",
    "left_shoulder",
    "left_elbow",
    "left_wrist",
    "right_shoulder",
    "right_elbow",
    "right_wrist",
)
PARENTS = (-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 9, 8, 11, 12, 8, 14, 15)
_AT = {name: at for at, name in enumerate(NAMES)}
_FULL_BEND = np.radians(15)  # bend of a limb from which on its plane fixes the twist


def unit(vectors):
    """Normalise vectors; zero stays zero."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def axes(across, up):
    """Rotation matrices with x along `across` and y towards `up`."""
    x = unit(across)
    y = unit(up - (up * x).sum(-1, keepdims=True) * x)
    return np.stack([x, y, np.cross(x, y)], axis=-1)


def between(start, goal):
    """Matrices of the shortest rotations from unit vectors `start` to `goal`."""
    start, goal = np.broadcast_arrays(start, goal)
    cosine = (start * goal).sum(-1)[..., None, None]
    cross = np.cross(start, goal)
    zero = np.zeros_like(cross[..., 0])
    skew = np.stack(
        [
            np.stack([zero, -cross[..., 2], cross[..., 1]], -1),
            np.stack([cross[..., 2], zero, -cross[..., 0]], -1),
            np.stack([-cross[..., 1], cross[..., 0], zero], -1),
        ],
        -2,
    )
    turned = np.eye(3) + skew + skew @ skew / np.maximum(1 + cosine, 1e-9)
    side = np.eye(3)[np.abs(start).argmin(-1)]
    axis = unit(np.cross(start, side))
    half = 2 * axis[..., :, None] * axis[..., None, :] - np.eye(3)  # half a turn for opposite vectors
    return np.where(cosine < -1 + 1e-9, half, turned)


def about(axis, angle):
    """Matrices of rotations about unit axes."""
    cross = np.cross(np.eye(3), axis[..., None, :])
    sine, cosine = np.sin(angle)[..., None, None], np.cos(angle)[..., None, None]
    return (
        cosine * np.eye(3)
        + sine * np.swapaxes(cross, -1, -2) * -1
        + (1 - cosine) * axis[..., :, None] * axis[..., None, :]
    )


def fit(joints):
    """Offsets (17, 3) m in the T-pose, in the order of NAMES, from joints (T, 17, 3) in the order of JOINTS."""
    p = {name: joints[:, JOINTS.index(name)] for name in JOINTS}
    length = {
        name: np.median(
            [np.linalg.norm(p[f"{side}_{name}"] - p[parent.format(side)], axis=-1) for side in ("left", "right")]
        )
        for name, parent in (
            ("hip", "pelvis"),
            ("knee", "{}_hip"),
            ("ankle", "{}_knee"),
            ("elbow", "{}_shoulder"),
            ("wrist", "{}_elbow"),
        )
    }
    chest = axes(p["left_shoulder"] - p["right_shoulder"], p["thorax"] - p["pelvis"])

    def within(vectors):
        return np.einsum("tji,tj->ti", chest, vectors)

    shoulder = np.median(
        np.concatenate(
            [within(p["left_shoulder"] - p["thorax"]), within(p["right_shoulder"] - p["thorax"]) * (-1, 1, 1)]
        ),
        axis=0,
    )
    offsets = np.zeros((17, 3))
    offsets[_AT["spine"], 1] = np.median(np.linalg.norm(p["spine"] - p["pelvis"], axis=-1))
    offsets[_AT["thorax"], 1] = np.median(np.linalg.norm(p["thorax"] - p["spine"], axis=-1))
    offsets[_AT["neck"]] = np.median(within(p["neck"] - p["thorax"]), axis=0) * (0, 1, 1)
    offsets[_AT["head"], 1] = np.median(np.linalg.norm(p["head"] - p["neck"], axis=-1))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        offsets[_AT[f"{side}_hip"]] = sign * length["hip"], 0, 0
        offsets[_AT[f"{side}_knee"]] = 0, -length["knee"], 0
        offsets[_AT[f"{side}_ankle"]] = 0, -length["ankle"], 0
        offsets[_AT[f"{side}_shoulder"]] = shoulder * (sign, 1, 1)
        offsets[_AT[f"{side}_elbow"]] = sign * length["elbow"], 0, 0
        offsets[_AT[f"{side}_wrist"]] = sign * length["wrist"], 0, 0
    return offsets


def solve(joints, offsets):
    """Rotations (T, 17, 3, 3) of the joints relative to their parents, and positions (T, 3) of the pelvis."""
    p = {name: joints[:, JOINTS.index(name)] for name in JOINTS}
    whole = np.empty((len(joints), 17, 3, 3))

    def aimed(parent, rest, direction):
        return parent @ between(np.asarray(rest, float), np.einsum("tji,tj->ti", parent, direction))

    up, left = np.array([0.0, 1, 0]), np.array([1.0, 0, 0])
    pelvis = axes(p["left_hip"] - p["right_hip"], p["thorax"] - p["pelvis"])
    chest = axes(p["left_shoulder"] - p["right_shoulder"], p["thorax"] - p["pelvis"])
    middle = p["pelvis"] + pelvis @ offsets[_AT["spine"]]
    whole[:, _AT["pelvis"]], whole[:, _AT["thorax"]] = pelvis, chest
    whole[:, _AT["spine"]] = aimed(pelvis, up, unit(p["thorax"] - middle))
    whole[:, _AT["neck"]] = whole[:, _AT["head"]] = aimed(chest, up, unit(p["head"] - p["neck"]))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        outward = sign * left
        for parent, rest, hinge, (a, b, c) in (
            (pelvis, -up, left, ("hip", "knee", "ankle")),
            (chest, outward, np.cross(outward, (0, 0, 1)), ("shoulder", "elbow", "wrist")),
        ):
            upper = unit(p[f"{side}_{b}"] - p[f"{side}_{a}"])
            lower = unit(p[f"{side}_{c}"] - p[f"{side}_{b}"])
            turned = aimed(parent, rest, upper)
            expected, normal = turned @ hinge, np.cross(upper, lower)
            bend = np.arctan2(np.linalg.norm(normal, axis=-1), (upper * lower).sum(-1))
            weight = np.clip(bend / _FULL_BEND, 0, 1)[:, None]
            weight = weight * weight * (3 - 2 * weight)
            axis = weight * unit(normal) + (1 - weight) * expected
            twist = np.arctan2((np.cross(expected, axis) * upper).sum(-1), (expected * axis).sum(-1))
            whole[:, _AT[f"{side}_{a}"]] = turned = about(upper, twist) @ turned
            whole[:, _AT[f"{side}_{b}"]] = whole[:, _AT[f"{side}_{c}"]] = aimed(turned, rest, lower)
    local = whole.copy()
    local[:, 1:] = np.swapaxes(whole[:, PARENTS[1:]], -1, -2) @ whole[:, 1:]
    return local, p["pelvis"].copy()


def matrix_of(quaternion):
    """Matrices of unit quaternions (w, x, y, z)."""
    w, x, y, z = np.moveaxis(np.asarray(quaternion, float), -1, 0)
    return np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], -1),
            np.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], -1),
            np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], -1),
        ],
        -2,
    )
