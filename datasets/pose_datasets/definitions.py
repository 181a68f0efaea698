"""Where exactly a "hip" or a "thorax" is: every data set and detector has its own idea, and training has to know many.

Points (B, T, 19, 3) m are those of `pose_datasets.mapping.POINTS`.
"""

from dataclasses import dataclass

import numpy as np

from pose.types import F32
from pose_datasets.mapping import EARS, NOSE
from pose_datasets.vectors import cross, reject, unit

_HIPS, _SHOULDERS = [4, 1], [11, 14]  # left, right


@dataclass(frozen=True, kw_only=True)
class DefinitionConfig:
    """Ranges, per sequence; metres unless said otherwise."""

    canonical: float = 0.25  # share of sequences with every joint where `pose_datasets.mapping` puts it
    pelvis: float = 0.3  # share whose pelvis lies above the hip axis, by up to 45 % of the way to the spine
    spine: float = 0.12  # along the trunk, share of its length
    hip: float = 0.02
    shoulder: float = 0.02
    wrist: float = 0.15  # share whose wrists lie up to a third of the forearm nearer to the elbow
    detector: float = 0.012  # the same for hips and shoulders of a detector, whose joints are not quite ours


# Every joint where `pose_datasets.mapping` puts it, and a detector that agrees.
CANONICAL = DefinitionConfig(canonical=1.0, detector=0.0)


def observed_joints(points: F32) -> F32:
    """(..., 19, 3) -> (..., 17, 3): where `pose.skeletons.to_h36m17` finds the joints of a detector's skeleton."""
    joints = points[..., :17, :].copy()
    joints[..., 8, :] = points[..., _SHOULDERS, :].mean(axis=-2)
    joints[..., 7, :] = (joints[..., 0, :] + joints[..., 8, :]) / 2
    joints[..., 9, :] = points[..., NOSE, :]
    joints[..., 10, :] = points[..., EARS, :]
    return joints


def redefine(rng: np.random.Generator, points: F32, config: DefinitionConfig) -> F32:
    """Joints (B, T, 17, 3) of a data set with another idea of where joints are: a fixed idea for each sequence.

    Pelvis, spine, thorax, neck and head slide along the trunk and between the places in use (mid-shoulders to the base
    of the neck, base of the neck to nose, middle to top of the head); hips and shoulders move a little in the frame of
    the body, alike on both sides.
    """
    batch = len(points)
    joints = points[..., :17, :].copy()
    other = (rng.random((batch, 1, 1)) >= config.canonical).astype(np.float32)

    def between(low: float, high: float) -> F32:
        return rng.uniform(low, high, (batch, 1, 1)).astype(np.float32) * other

    shift_girdle(rng, joints, _HIPS, config.hip * other)
    shift_girdle(rng, joints, _SHOULDERS, config.shoulder * other)
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


def shift_girdle(rng: np.random.Generator, joints: F32, pair: list[int], spread: F32 | float) -> None:
    """Move both joints of `pair` (left, right) in the frame of the body by a fixed normal offset, in place.

    spread: standard deviation in metres, a number or (B, 1, 1). A hip takes the pelvis along.
    """
    left = unit(joints[:, :, pair[0]] - joints[:, :, pair[1]])
    up = unit(reject(joints[:, :, 8] - joints[:, :, 0], left))
    wide, high, front = (rng.standard_normal((3, len(joints), 1, 1), dtype=np.float32) * spread).astype(np.float32)
    common = high * up + front * cross(left, up)
    joints[:, :, pair[0]] += wide * left + common
    joints[:, :, pair[1]] += common - wide * left
    if pair == _HIPS:
        joints[:, :, 0] = joints[..., pair, :].mean(axis=-2)


def detectors_points(rng: np.random.Generator, points: F32, config: DefinitionConfig) -> F32:
    """Points (B, T, 19, 3) as a detector has learnt them: hips and shoulders a little off, differently each time."""
    points = points.copy()
    shift_girdle(rng, points, _HIPS, config.detector)
    shift_girdle(rng, points, _SHOULDERS, config.detector)
    return points
