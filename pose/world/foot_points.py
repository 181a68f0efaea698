"""Heels and toes in 3D, from their image positions, the lifted leg, and the proportions of a foot.

The lifter estimates no heels and toes. The direction of a foot is the most probable one under three Gaussian errors.
The foot is at a right angle to the shank and points forward, as bent knee and pelvis show; heel and toe are where the
image shows them; a foot in contact is level. Without heel and toe in the image, or where the image shows a foot that
points backwards, as keypoints of people seen from behind do, the points are NaN, and the direction follows from leg and
floor.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.skeletons import H36M17, Skeleton
from pose.structures.types import F32, F64, Flags
from pose.world.rules import MIN_SCORE

PARTS = ("heel", "toe")
# Standard deviations, chosen on half of the walks of docs/studies/feet.md. Directions are unit vectors.
_LEG_SIGMA = 0.3  # of the direction that the leg gives
_LEVEL_SIGMA = 0.07  # of the vertical component of the direction of a foot in contact
_IMAGE_SIGMA = 0.03  # of the vector from heel to toe in the image, m at the distance of the ankle
# Radii in mm that contain 68 % of the errors of heel and toe relative to the ankle; measured in docs/studies/feet.md.
SIGMA_MM = (27.0, 56.0)
ANKLE_SD = 10.0  # degrees, standard deviation of `ankle_flexions`; measured in docs/studies/feet.md
_PELVIS_SHARE = 0.5  # weight of the pelvis in the forward direction; that of a knee bent by 90 degrees is 1
_KNEES = [H36M17.index(f"{side}_knee") for side in ("left", "right")]
_ANKLES = [H36M17.index(f"{side}_ankle") for side in ("left", "right")]
_HIPS = [H36M17.index(f"{side}_hip") for side in ("left", "right")]
_THORAX = H36M17.index("thorax")
_TOES = ("foot_index", "big_toe")


@dataclass(frozen=True, slots=True)
class FootShape:
    """Heel and toe of a flat foot relative to the ankle, in lengths of the shank."""

    # Shares of the stature: shank 0.246, ankle above the sole 0.039. Source: Drillis and Contini 1966, in Winter,
    # Biomechanics and Motor Control of Human Movement.
    ankle_heights: tuple[float, float] = (0.039 / 0.246, 0.039 / 0.246)  # heights of the ankle above (heel, toe)
    # The foot's length is 0.152 of the stature, 30 % of it behind the ankle.
    forward_offsets: tuple[float, float] = (-0.3 * 0.152 / 0.246, 0.7 * 0.152 / 0.246)


DEFAULT_SHAPE = FootShape()


def foot_joints(skeleton: Skeleton) -> NDArray[np.int64] | None:
    """Return indices (2, 3) of ankle, heel and toe of left and right foot; None if a skeleton lacks heels or toes."""
    rows = []
    for side in ("left", "right"):
        toe = next((name for part in _TOES if (name := f"{side}_{part}") in skeleton.names), None)
        if toe is None or f"{side}_heel" not in skeleton.names:
            return None
        rows.append([skeleton.index(name) for name in (f"{side}_ankle", f"{side}_heel", toe)])
    return np.array(rows)


@dataclass(frozen=True, slots=True)
class ImageFeet:
    """Feet in the images of N poses."""

    pixels: F64  # (N, 2, 3, 2) px, ankle, heel and toe of the left and right foot
    scores: F32  # (N, 2, 3) detection scores of these points
    focal: F64  # (N, 2) px, focal lengths along x and y

    @property
    def known(self) -> Flags:
        """Mask (N, 2, 2): for the left and right foot, whether ankle and heel, and ankle and toe, are detected."""
        each: Flags = (self.scores >= MIN_SCORE) & np.isfinite(self.pixels).all(axis=-1)
        return np.asarray(each[..., :1] & each[..., 1:])


def extract_feet(skeleton: Skeleton, keypoints: F32, scores: F32, swapped: Flags, focal: F64) -> ImageFeet | None:
    """Extract the feet of N poses from 2D keypoints; None if the skeleton has no heels and toes."""
    joints = foot_joints(skeleton)
    if joints is None:
        return None
    legs = swapped[:, 0, None, None]
    pixels, known = keypoints[:, joints].astype(np.float64), scores[:, joints]
    pixels = np.where(legs[..., None], pixels[:, ::-1], pixels)
    return ImageFeet(pixels, np.where(legs, known[:, ::-1], known), np.broadcast_to(focal, (len(keypoints), 2)))


def lift_feet(
    joints: F64, seen: ImageFeet, up: F64 | None, contacts: F32 | None, shape: FootShape = DEFAULT_SHAPE
) -> F64:
    """Estimate heels and toes of N poses of one camera in 3D."""
    frames, known = _foot_frames(joints, seen, up, contacts, shape)
    shanks = np.linalg.norm(joints[:, _KNEES] - joints[:, _ANKLES], axis=-1)[..., None]
    points = [
        joints[:, _ANKLES] + shanks * (forward * frames[:, :, 0] - height * frames[:, :, 1])
        for forward, height in zip(shape.forward_offsets, shape.ankle_heights, strict=True)
    ]
    feet = np.stack(points, axis=2)
    feet[~known] = np.nan
    return feet


def foot_frames(
    joints: F64, seen: ImageFeet | None, up: F64 | None, contacts: F32 | None, shape: FootShape = DEFAULT_SHAPE
) -> F64:
    """Return foot directions (N, foot, (heel to toe, sole normal), 3) in the camera frame; zeros if degenerate."""
    return _foot_frames(joints, seen, up, contacts, shape)[0]


def _foot_frames(
    joints: F64, seen: ImageFeet | None, up: F64 | None, contacts: F32 | None, shape: FootShape
) -> tuple[F64, Flags]:
    """Return the frames, and the mask (N, 2, 2) of heels and toes whose image positions are used."""
    shanks = joints[:, _KNEES] - joints[:, _ANKLES]
    prior, pelvis = _leg_directions(joints)
    weight = np.tile(np.eye(3) / _LEG_SIGMA**2, (*prior.shape[:2], 1, 1))
    pull = prior / _LEG_SIGMA**2
    level = np.zeros((*prior.shape[:2], 1))
    if up is not None and contacts is not None:
        level = np.nan_to_num(contacts.astype(np.float64))[..., None]
        weight += (up[:, :, None] * up[:, None])[:, None] * (level / _LEVEL_SIGMA**2)[..., None]
    along = _solved(weight, pull)
    known = np.zeros((*prior.shape[:2], 2), bool)
    if seen is not None:
        length = np.linalg.norm(shanks, axis=-1) * (shape.forward_offsets[1] - shape.forward_offsets[0])
        _add_image_terms(weight, pull, joints[:, _ANKLES], length, seen)
        shown = _solved(weight, pull)
        forwards = ((shown * prior).sum(axis=-1) >= 0) | ((shown * pelvis).sum(axis=-1) >= 0)
        along, known = np.where(forwards[..., None], shown, along), seen.known & forwards[..., None]
    above = (1 - level) * _unit(shanks) + level * (0.0 if up is None else up[:, None])
    return np.stack([along, _unit(_perpendicular(above, along))], axis=2), known


def _solved(weight: F64, pull: F64) -> F64:
    return _unit(np.linalg.solve(weight, pull[..., None])[..., 0])


def ankle_flexions(joints: F64, seen: ImageFeet, up: F64 | None, contacts: F32 | None) -> F64:
    """Return ankle flexions (N, 2) degrees: 0 at a right angle, positive with raised toes, NaN if undetected."""
    frames, known = _foot_frames(joints, seen, up, contacts, DEFAULT_SHAPE)
    along = frames[:, :, 0]
    sine = (along * _unit(joints[:, _KNEES] - joints[:, _ANKLES])).sum(axis=-1)
    return np.where(known.all(axis=-1), np.degrees(np.arcsin(np.clip(sine, -1, 1))), np.nan)


def _add_image_terms(weight: F64, pull: F64, ankles: F64, length: F64, seen: ImageFeet) -> None:
    """Add the vectors from heel to toe in the images to the normal equations (N, 2, 3, 3) and (N, 2, 3), in place."""
    depth = ankles[..., 2]
    known = seen.known.all(axis=-1) & (depth > 0) & (length > 0)
    depth, length = np.where(known, depth, 1.0), np.where(known, length, 1.0)
    # First order: a short vector at the ankle is projected to its (x, y), minus its z times (x, y) / z of the ankle.
    slope = np.concatenate([np.broadcast_to(np.eye(2), (*depth.shape, 2, 2)), np.zeros((*depth.shape, 2, 1))], axis=-1)
    slope[..., 2] = -ankles[..., :2] / depth[..., None]
    shown = np.where(known[..., None], seen.pixels[:, :, 2] - seen.pixels[:, :, 1], 0.0)
    measured = shown / seen.focal[:, None] * (depth / length)[..., None]
    certain = np.where(known, (length / _IMAGE_SIGMA) ** 2, 0.0)
    weight += np.einsum("nfki,nfkj->nfij", slope, slope) * certain[..., None, None]
    pull += np.einsum("nfki,nfk->nfi", slope, measured) * certain[..., None]


def _leg_directions(joints: F64) -> tuple[F64, F64]:
    """Return unit vectors (N, 2, 3) at right angles to the shanks: forward by knee and pelvis, and by the pelvis."""
    hips, knees, ankles = joints[:, _HIPS], joints[:, _KNEES], joints[:, _ANKLES]
    shanks, thighs = _unit(knees - ankles), _unit(hips - knees)
    forward = _unit(np.cross(hips[:, 0] - hips[:, 1], joints[:, _THORAX] - joints[:, 0]))[:, None]
    pelvis = _unit(_perpendicular(forward, shanks))
    return _unit(_PELVIS_SHARE * pelvis - _perpendicular(thighs, shanks)), pelvis


def _perpendicular(vectors: F64, axes: F64) -> F64:
    """Return the part of vectors (..., 3) at right angles to unit vectors (..., 3)."""
    return np.asarray(vectors - (vectors * axes).sum(axis=-1, keepdims=True) * axes)


def _unit(vectors: NDArray[np.floating]) -> F64:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9))
