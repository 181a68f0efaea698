"""Variation of joint definitions: data sets and detectors place hips, thorax and other joints differently.

Points (B, T, 19, 3) m are those of `pose_datasets.mapping.POINTS`, for B sequences with T frames.
"""

from dataclasses import dataclass

import numpy as np

from pose.structures.types import F32
from pose_datasets.mapping import EARS, NOSE
from pose_datasets.vectors import cross, perpendicular, unit

_HIPS, _SHOULDERS = [4, 1], [11, 14]  # left, right


@dataclass(frozen=True, kw_only=True)
class DefinitionConfig:
    """Ranges of the variation of joint definitions between sequences.

    Attributes:
        canonical: Fraction of sequences with the joint definitions of `pose_datasets.mapping`. The other settings,
            except `detector`, apply to the rest.
        pelvis: Fraction of sequences whose pelvis is above the hip axis, by up to 45 % of the distance to the spine.
        spine: Maximum shift of the spine along the trunk, as a fraction of its length.
        hip: Standard deviation of the positions of the hips per axis, m.
        shoulder: Standard deviation of the positions of the shoulders per axis, m.
        wrist: Fraction of sequences whose wrists are closer to the elbow, by up to a third of the forearm.
        detector: Standard deviation of the positions of a detector's hips and shoulders per axis, m.
    """

    canonical: float = 0.25
    pelvis: float = 0.3
    spine: float = 0.12
    hip: float = 0.02
    shoulder: float = 0.02
    wrist: float = 0.15
    detector: float = 0.012


# The joints of `pose_datasets.mapping`, for ground truth and detector.
CANONICAL = DefinitionConfig(canonical=1.0, detector=0.0)


def observed_joints(points: F32) -> F32:
    """Return Human3.6M joints (..., 17, 3) as `to_h36m17` derives them from a detector's points (..., 19, 3)."""
    joints = points[..., :17, :].copy()
    joints[..., 8, :] = points[..., _SHOULDERS, :].mean(axis=-2)
    joints[..., 7, :] = (joints[..., 0, :] + joints[..., 8, :]) / 2
    joints[..., 9, :] = points[..., NOSE, :]
    joints[..., 10, :] = points[..., EARS, :]
    return joints


def redefine(rng: np.random.Generator, points: F32, config: DefinitionConfig) -> F32:
    """Return Human3.6M joints (B, T, 17, 3) m at randomly changed places, as data sets define joints differently."""
    # The change is constant in each of the B sequences. Hips and shoulders move slightly in the frame of the body,
    # symmetrically. Pelvis, spine and wrists move along the bones, the thorax from the midpoint of the shoulders to the
    # base of the neck, the neck from its base to the nose, and the head from its middle to its top.
    batch = len(points)
    joints = points[..., :17, :].copy()
    other = (rng.random((batch, 1, 1)) >= config.canonical).astype(np.float32)

    def between(low: float, high: float) -> F32:
        return rng.uniform(low, high, (batch, 1, 1)).astype(np.float32) * other

    shift_joint_pair(rng, joints, _HIPS, config.hip * other)
    shift_joint_pair(rng, joints, _SHOULDERS, config.shoulder * other)
    pelvis, spine, thorax = joints[:, :, 0], joints[:, :, 7], joints[:, :, 8]
    neck, head, nose, ears = (points[:, :, point] for point in (9, 10, NOSE, EARS))
    trunk = thorax - pelvis
    high = (rng.random((batch, 1, 1)) < config.pelvis).astype(np.float32)
    new_spine = spine + between(-config.spine, config.spine) * trunk
    straight = between(0, 1)
    new_spine += straight * (pelvis + trunk / 2 - spine)
    new_thorax = thorax + between(0, 1) * (joints[..., _SHOULDERS, :].mean(axis=-2) - thorax)
    new_thorax += between(-0.08, 0.25) * (neck - thorax)
    joints[:, :, 0] = pelvis + high * between(0, 0.45) * (spine - pelvis)
    joints[:, :, 7], joints[:, :, 8] = new_spine, new_thorax
    short = (rng.random((batch, 1, 1, 1)) < config.wrist) * between(0, 0.33)[..., None]
    joints[:, :, [13, 16]] += short * (joints[:, :, [12, 15]] - joints[:, :, [13, 16]])
    low_or_nose = between(-0.6, 1)
    joints[:, :, 9] = neck + np.maximum(low_or_nose, 0) * (nose - neck) + np.minimum(low_or_nose, 0) * (neck - thorax)
    joints[:, :, 10] = head + between(-1, 0.5) * (head - ears)
    return joints


def shift_joint_pair(rng: np.random.Generator, joints: F32, pair: list[int], spread: F32 | float) -> None:
    """Shift a joint pair (pelvis with the hips) by a constant normal offset, symmetrically and in place."""
    left = unit(joints[:, :, pair[0]] - joints[:, :, pair[1]])
    up = unit(perpendicular(joints[:, :, 8] - joints[:, :, 0], left))
    wide, high, front = (rng.standard_normal((3, len(joints), 1, 1), dtype=np.float32) * spread).astype(np.float32)
    common = high * up + front * cross(left, up)
    joints[:, :, pair[0]] += wide * left + common
    joints[:, :, pair[1]] += common - wide * left
    if pair == _HIPS:
        joints[:, :, 0] = joints[..., pair, :].mean(axis=-2)


def detector_points(rng: np.random.Generator, points: F32, config: DefinitionConfig) -> F32:
    """Return points (B, T, 19, 3) m with hips and shoulders as a random detector defines them."""
    points = points.copy()
    shift_joint_pair(rng, points, _HIPS, config.detector)
    shift_joint_pair(rng, points, _SHOULDERS, config.detector)
    return points
