"""Augmentation of bodies: other proportions, mirror images, and limbs of other clips.

Motion is represented by bone vectors in the world frame: the position of each point minus that of its parent. The entry
of the pelvis is its position. A rotation of a limb rotates its bone vectors, another body scales them, and a limb of
another clip replaces them; `assemble` computes the points again. Axes: B sequence, T time, then the 19 points of
`pose_datasets.mapping.POINTS`.
"""

from dataclasses import dataclass

import numpy as np

from pose.structures.types import F32, F64
from pose_datasets.vectors import cross, norm, perpendicular, unit

PARENTS = (-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 9, 8, 11, 12, 8, 14, 15, 9, 9)
MIRROR = (0, 4, 5, 6, 1, 2, 3, 7, 8, 9, 10, 14, 15, 16, 11, 12, 13, 17, 18)

# Bones, named by the point at their far end.
UPPER = [7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]
CHEST = [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]
HEAD = [9, 10, 17, 18]
ARMS = ([12, 13], [15, 16])
LEGS = ([5, 6], [2, 3])
SHOULDERS_AND_ARMS = [11, 12, 13, 14, 15, 16]


@dataclass(frozen=True, kw_only=True)
class BodyConfig:
    """Settings of the augmentation of bodies. Fractions are of all sequences, unless stated otherwise.

    Attributes:
        proportions: Fraction of sequences with other bone lengths.
        unlike: Fraction of these with proportions outside the range of the CMU skeletons, mostly with wider shoulders
            and hips and a longer trunk.
        children: Fraction of these whose body is scaled to the size of a child. The others are adults.
        size: Standard deviation of the log of an adult's height.
        child_head: Exponent c of the head size of children. If their body is scaled by s, their head is scaled by s^(1
            - c).
        child_legs: Exponent c of the leg length of children. If their body is scaled by s, their legs are scaled by
            s^(1 + c).
        other_legs: Fraction of sequences that get the legs of another clip, of those that do not keep their recorded
            poses (`SynthesisConfig.natural`).
        other_arms: Fraction of sequences that get the arms of another clip, of those that do not keep their recorded
            poses.
        mirror: Fraction of mirrored sequences.
        other_shoulders: Fraction of sequences whose shoulders have a random width, as their definitions differ.
        shoulder_width: Smallest and largest of these widths, as fractions of the leg length.
    """

    proportions: float = 0.9
    unlike: float = 0.35
    children: float = 0.12
    size: float = 0.06
    child_head: float = 0.4
    child_legs: float = 0.0
    other_legs: float = 0.25
    other_arms: float = 0.3
    mirror: float = 0.5
    other_shoulders: float = 0.0
    shoulder_width: tuple[float, float] = (0.28, 0.6)


def to_bones(points: F32) -> F32:
    """Convert points (..., 19, 3) to bone vectors: each point minus its parent; the pelvis is unchanged."""
    bones = points - points[..., np.maximum(PARENTS, 0), :]
    bones[..., 0, :] = points[..., 0, :]
    return bones


def assemble(bones: F32) -> F32:
    """Convert bone vectors (..., 19, 3) to points: the inverse of `to_bones`."""
    points = bones.copy()
    for joint, parent in enumerate(PARENTS[1:], start=1):
        points[..., joint, :] += points[..., parent, :]
    return points


def mirror(points: F32) -> F32:
    """Reflect points or bone vectors (..., 19, 3) at the plane x = 0 of the world frame, and swap left and right."""
    return points[..., MIRROR, :] * np.array([-1, 1, 1], points.dtype)


def random_proportions(rng: np.random.Generator, batch: int, config: BodyConfig) -> F32:
    """Draw random scale factors (B, 19) of the bones that end at each point, of the path at the pelvis."""
    # Left and right bones differ by about 1 %, like measurements. Children are smaller, with relatively larger heads.
    changed = rng.random((batch, 1)) < config.proportions
    child = rng.random((batch, 1)) < config.children
    size = np.where(child, rng.uniform(np.log(0.55), np.log(0.85), (batch, 1)), rng.normal(0, config.size, (batch, 1)))
    # Skeletons differ most in the trunk, whose ends have no markers.
    odd = 1 + 1.5 * (rng.random((batch, 1)) < 0.15)

    def vary(spread: float) -> F64:
        return rng.normal(0, spread, (batch, 1)) * odd

    legs, shin, trunk, arms, forearm = vary(0.05), vary(0.06), vary(0.06), vary(0.06), vary(0.07)
    logs = rng.normal(0, 0.01, (batch, 19))
    logs[:, [0]] = legs
    logs[:, [2, 5]] += legs - shin / 2
    logs[:, [3, 6]] += legs + shin / 2
    logs[:, [1, 4]] += vary(0.10)
    logs[:, [7, 8]] += trunk
    logs[:, [11, 14]] += vary(0.08)
    logs[:, [12, 15]] += arms - forearm / 2
    logs[:, [13, 16]] += arms + forearm / 2
    if config.unlike:
        # Shoulders up to 28 % farther out, the spine up to 15 % longer above its middle, hips, shanks and forearms.
        some = rng.random(batch) < config.unlike
        for joints, low, high in (([11, 14], -0.1, 0.28), ([8], -0.08, 0.15), ([7], -0.1, 0.1), ([1, 4], -0.15, 0.25),
                                  ([3, 6], -0.06, 0.1), ([13, 16], -0.1, 0.1)):  # fmt: skip
            logs[:, joints] += (some * rng.uniform(np.log1p(low), np.log1p(high), batch))[:, None]
    smaller = np.where(child, size, 0)
    logs[:, HEAD] = vary(0.06) - config.child_head * smaller
    logs[:, [0, 2, 3, 5, 6]] += config.child_legs * smaller
    result: F32 = np.exp(changed * (size + np.clip(logs, -0.35, 0.35))).astype(np.float32)
    return result


def widen_shoulders(rng: np.random.Generator, bones: F32, config: BodyConfig) -> None:
    """Give some sequences of bone vectors (B, T, 19, 3) m shoulders of random width, in place."""
    if not config.other_shoulders:
        return
    rows = rng.random(len(bones)) < config.other_shoulders
    wanted = rng.uniform(*config.shoulder_width, (int(rows.sum()), 1, 1, 1)).astype(np.float32)
    left, right = SHOULDERS_AND_ARMS[0], SHOULDERS_AND_ARMS[3]
    width = norm(bones[rows, :1, left] - bones[rows, :1, right])[..., None, None]
    factor = 2 * wanted * _mean_length(bones[rows], [2, 3, 5, 6]) / np.maximum(width, np.float32(0.05))
    for joint in (left, right):
        bones[rows, :, joint] *= factor[:, :, 0]


def combine_with_legs(bones: F32, donor: F32) -> F32:
    """Combine bone vectors (B, T, 19, 3) m with the legs, and the path and rotation of the pelvis, of a donor."""
    turn = pelvis_frame(donor) @ np.swapaxes(pelvis_frame(bones), -1, -2)
    mixed = donor.copy()
    # Scaled to one body size, so that the trunk fits the legs.
    scale = _mean_length(donor, [2, 3, 5, 6]) / _mean_length(bones, [2, 3, 5, 6])
    mixed[..., UPPER, :] = bones[..., UPPER, :] @ np.swapaxes(turn, -1, -2) * scale
    return mixed


def combine_with_arms(bones: F32, donor: F32) -> F32:
    """Replace arms in bone vectors (B, T, 19, 3) m by a donor's, with their motion relative to the chest."""
    turn = thorax_frame(bones) @ np.swapaxes(thorax_frame(donor), -1, -2)
    mixed = bones.copy()
    scale = _mean_length(bones, [12, 15]) / _mean_length(donor, [12, 15])
    mixed[..., SHOULDERS_AND_ARMS, :] = donor[..., SHOULDERS_AND_ARMS, :] @ np.swapaxes(turn, -1, -2) * scale
    return mixed


def _mean_length(bones: F32, which: list[int]) -> F32:
    """Return the mean length (B, 1, 1, 1) m of the bones `which` in the first frame."""
    result: F32 = norm(bones[:, :1, which]).mean(axis=-1)[..., None, None]
    return result


def pelvis_frame(bones: F32) -> F32:
    """Return the axes (..., 3, 3) of the pelvis, left, up and forward, from bone vectors (..., 19, 3)."""
    return _frame(bones[..., 4, :] - bones[..., 1, :], bones[..., 7, :])


def thorax_frame(bones: F32) -> F32:
    """Return the axes (..., 3, 3) of the chest, left, up and forward, from bone vectors (..., 19, 3)."""
    return _frame(bones[..., 11, :] - bones[..., 14, :], bones[..., 8, :])


def _frame(left: F32, up: F32) -> F32:
    x = unit(left)
    y = unit(perpendicular(up, x))
    return np.stack([x, y, cross(x, y)], axis=-1)
