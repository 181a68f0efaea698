"""What one person says about the scene: directions of the standing body, positions of standing feet, proportions."""

import math

import numpy as np
from numpy.typing import NDArray

from pose.structures.skeletons import H36M17
from pose.structures.types import F64, Flags
from pose.world.contacts import ankle_speeds
from pose.world.gravity import ANKLES, body_directions
from pose.world.scene.model import PersonEvidence
from pose.world.work import Work

_GROUPS = 6  # groups of frames in which body directions are averaged
_FEET_PER_S, _MAX_FEET = 3.0, 36  # groups of frames per second, and at most, in which standing feet are averaged
_MIN_LEG_EXTENSION = 0.92  # minimum distance from hip to ankle, relative to thigh and shank, of a straight leg
_MIN_COSINE = 0.85  # minimum cosine between trunk and straight leg of a standing body
_MAX_FOOT_SPEED_MPS = 0.5  # maximum speed of a standing foot
_MIN_FRAMES = 3  # minimum standing frames, and minimum frames of a group of feet
# Logistic regression of the probability of a child on logarithms: leg and head as shares of leg, trunk and head, and
# the lifted height (m). Fitted to training subjects, of whom 16 % were children (docs/studies/scene.md).
_ADULT_LOG_MEANS, _ADULT_LOG_SIGMAS = np.array([-0.696, -1.704, 0.433]), np.array([0.0412, 0.0776, 0.1572])
_CHILD_LOG_ODDS, _CHILD_SLOPES = -1.94, np.array([0.17, 0.73, -0.46])
_BONES = {H36M17.names[child]: bone for bone, (_, child) in enumerate(H36M17.edges)}
_LEG_BONES, _TRUNK_BONES, _HEAD_BONES = (
    [_BONES[name] for name in names] for names in (("left_knee", "left_ankle"), ("spine", "thorax"), ("neck", "head"))
)
_LEGS = [[H36M17.index(f"{side}_{part}") for part in ("hip", "knee", "ankle")] for side in ("left", "right")]
_THORAX = H36M17.index("thorax")


def evidence_of(work: Work) -> PersonEvidence:
    """Measure one person."""
    axes, _ = body_directions(work.joints)
    standing = stands(work.joints) & ~work.filled & work.feet_seen.any(axis=1)
    groups = _groups(np.flatnonzero(standing) if standing.sum() >= _MIN_FRAMES else np.zeros(0, int), _GROUPS)
    directions = np.array([axes[rows].sum(axis=0) for rows in groups]).reshape(-1, 3)
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    centres = np.array([work.root[rows].mean(axis=0) for rows in groups]).reshape(-1, 3)
    step = float(np.median(np.diff(work.times))) if len(work.times) > 1 else 0.0
    return PersonEvidence(
        directions / np.maximum(lengths, 1e-9), centres, *_standing_feet(work, axes), work.height, work.height_given,
        child_probability(work.bones, work.height), step * len(work.times),
    )  # fmt: skip


def child_probability(bones: NDArray[np.floating], height: float) -> float:
    """Return the probability that a person with lifted bones (16,) m is a child."""
    leg, trunk, head = (float(bones[rows].sum()) for rows in (_LEG_BONES, _TRUNK_BONES, _HEAD_BONES))
    total = leg + trunk + head
    if min(leg, head) <= 0:
        return 1 / (1 + math.exp(-_CHILD_LOG_ODDS))
    values = np.log([leg / total, head / total, max(height, 1e-3)])
    apart = np.clip((values - _ADULT_LOG_MEANS) / _ADULT_LOG_SIGMAS, -2.5, 2.5)
    return 1 / (1 + math.exp(-_CHILD_LOG_ODDS - float(apart @ _CHILD_SLOPES)))


def stands(joints: NDArray[np.floating]) -> Flags:
    """Return (T,) whether a straight leg continues the trunk, of joints (T, 17, 3) in any axes."""
    trunk = joints[:, _THORAX] - joints[:, 0]
    result = np.zeros(len(joints), bool)
    for hip, knee, ankle in _LEGS:
        leg = joints[:, hip] - joints[:, ankle]
        length = np.linalg.norm(leg, axis=1)
        bones = np.linalg.norm(joints[:, hip] - joints[:, knee], axis=1)
        bones = bones + np.linalg.norm(joints[:, knee] - joints[:, ankle], axis=1)
        cosine = (leg * trunk).sum(axis=1) / np.maximum(length * np.linalg.norm(trunk, axis=1), 1e-9)
        result |= (length > _MIN_LEG_EXTENSION * bones) & (cosine > _MIN_COSINE)
    return result


def _standing_feet(work: Work, axes: F64) -> tuple[F64, F64]:
    """Return positions (K, 3) m of slow, visible, lower feet in groups of frames, and the axes (K, 3) of the body."""
    if len(work.times) < _MIN_FRAMES:
        return np.zeros((0, 3)), np.zeros((0, 3))
    ankles = work.joints[:, ANKLES] + work.root[:, None]
    usable = work.feet_seen & ~work.filled[:, None] & (ankle_speeds(ankles, work.times) < _MAX_FOOT_SPEED_MPS)
    along = (ankles * axes.mean(axis=0)).sum(axis=-1)
    lower = np.where(usable, along, np.inf).argmin(axis=1)
    rows = np.flatnonzero(usable.any(axis=1))
    if len(rows) < _MIN_FRAMES:
        return np.zeros((0, 3)), np.zeros((0, 3))
    groups = _groups(rows, min(_MAX_FEET, math.ceil(_FEET_PER_S * float(np.ptp(work.times)))))
    means = np.array([axes[part].mean(axis=0) for part in groups])
    feet = np.array([np.median(ankles[part, lower[part]], axis=0) for part in groups])
    return feet, means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)


def _groups(rows: NDArray[np.intp], most: int) -> list[NDArray[np.intp]]:
    """Split rows into at most `most` consecutive groups of at least `_MIN_FRAMES` rows."""
    count = min(most, len(rows) // _MIN_FRAMES)
    return list(np.array_split(rows, count)) if count else []
