"""Heels and toes in 3D, from their image positions, the lifted ankle, and the proportions of a foot.

The lifter has no feet. A foot point is on its ray at the foot's length from the ankle. A foot in contact is flat on the
floor, so its direction is that from heel to toe on the floor. Points that are not detected are not estimated.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.skeletons import H36M17, Skeleton
from pose.types import F32

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

PARTS = ("heel", "toe")
MIN_SCORE = 0.3
MIN_CONTACT = 0.5  # minimum contact probability of a flat foot
# Relative to the shank (knee to ankle, 0.246 of the stature): ankle above the sole, heel behind and big toe in front of
# the ankle. Source: Drillis and Contini 1966, in Winter, Biomechanics and Motor Control; the foot's length is 0.152 of
# the stature, 30 % of it behind the ankle.
_KNEES = [H36M17.index(f"{side}_knee") for side in ("left", "right")]
_ANKLES = [H36M17.index(f"{side}_ankle") for side in ("left", "right")]
_HIPS = [H36M17.index(f"{side}_hip") for side in ("left", "right")]
_GRAZING = 0.02  # minimum sine of the angle between ray and floor
_TOES = ("foot_index", "big_toe")


@dataclass(frozen=True, slots=True)
class FootShape:
    """Heel and toe of a flat foot, in shank lengths: below the ankle, and in front of it."""

    below: tuple[float, float] = (0.039 / 0.246, 0.039 / 0.246)
    before: tuple[float, float] = (-0.3 * 0.152 / 0.246, 0.7 * 0.152 / 0.246)


USUAL = FootShape()


def foot_joints(skeleton: Skeleton) -> NDArray[np.int64] | None:
    """Joints (2, 3) of a 2D skeleton: ankle, heel and toe of the left and right foot; None if there are none."""
    rows = []
    for side in ("left", "right"):
        toe = next((name for part in _TOES if (name := f"{side}_{part}") in skeleton.names), None)
        if toe is None or f"{side}_heel" not in skeleton.names:
            return None
        rows.append([skeleton.index(name) for name in (f"{side}_ankle", f"{side}_heel", toe)])
    return np.array(rows)


def lift_feet(
    joints: F64, pixels: F64, scores: F32, matrix: F64, up: F64, contacts: F32, shape: FootShape = USUAL
) -> F64:
    """Heels and toes of N poses of one camera.

    Args:
        joints: (N, 17, 3) m, Human3.6M-17 in the camera frame.
        pixels: (N, 2, 3, 2) px, ankle, heel and toe of the left and right foot.
        scores: (N, 2, 3) of these.
        matrix: (3, 3) px, intrinsics.
        up: (N, 3) vertical in the camera frame.
        contacts: (N, 2) contact probability.
        shape: Shape of both feet.

    Returns:
        (N, 2, 2, 3) m in the camera frame, heel and toe of the left and right foot; NaN where not detected.
    """
    ankles = joints[:, _ANKLES]
    shanks = np.linalg.norm(joints[:, _KNEES] - ankles, axis=-1)
    rays = _rays(ankles, pixels, matrix)
    forward = _forward(joints, up)
    swinging = _on_spheres(ankles, rays, shanks, forward, shape)
    flat = _on_floor(ankles, rays, shanks, up, forward, shape)
    feet = np.where((contacts >= MIN_CONTACT)[..., None, None], flat, swinging)
    seen = (scores >= MIN_SCORE) & np.isfinite(pixels).all(axis=-1)
    feet[~(seen[..., :1] & seen[..., 1:])] = np.nan
    return feet


def _rays(ankles: F64, pixels: F64, matrix: F64) -> F64:
    """Directions (N, 2, 2, 3) of heels and toes, corrected by the offset between lifted and detected ankles."""
    shown = ankles @ matrix.T
    missed = shown[..., :2] / shown[..., 2:] - pixels[:, :, 0]
    there = np.nan_to_num(pixels[:, :, 1:] + missed[:, :, None])
    rays = np.concatenate([there, np.ones((*there.shape[:-1], 1))], axis=-1) @ np.linalg.inv(matrix).T
    return np.asarray(rays / np.linalg.norm(rays, axis=-1, keepdims=True))


def _forward(joints: F64, up: F64) -> F64:
    """Horizontal facing direction (N, 3) of the pelvis."""
    forward = np.cross(joints[:, _HIPS[0]] - joints[:, _HIPS[1]], up)
    return np.asarray(forward / np.maximum(np.linalg.norm(forward, axis=-1, keepdims=True), 1e-9))


def _on_spheres(ankles: F64, rays: F64, shanks: F64, forward: F64, shape: FootShape) -> F64:
    """The intersection of each ray with a sphere around the ankle.

    Of two intersections the toe takes the one farther to the front, the heel the other. A ray without intersection
    gives the nearest direction.
    """
    radii = shanks[..., None] * np.hypot(shape.before, shape.below)
    along = (ankles[:, :, None] * rays).sum(axis=-1)
    room = np.sqrt(np.maximum(along**2 - (ankles**2).sum(axis=-1)[..., None] + radii**2, 0))
    both = [(along + sign * room)[..., None] * rays - ankles[:, :, None] for sign in (-1, 1)]
    front = [(one * forward[:, None, None]).sum(axis=-1) * np.sign(shape.before) for one in both]
    chosen = np.where((front[0] > front[1])[..., None], both[0], both[1])
    size = np.linalg.norm(chosen, axis=-1, keepdims=True)
    return np.asarray(ankles[:, :, None] + chosen * radii[..., None] / np.maximum(size, 1e-9))


def _on_floor(ankles: F64, rays: F64, shanks: F64, up: F64, forward: F64, shape: FootShape) -> F64:
    """Heel and toe of flat feet: at the height of the floor, in the direction from heel to toe there."""
    upwards = up[:, None, None]
    below = ankles[:, :, None] - (np.array(shape.below) * shanks[..., None])[..., None] * upwards
    falling = (rays * upwards).sum(axis=-1)
    height = (below * upwards).sum(axis=-1)
    seen = np.abs(falling) > _GRAZING
    hits = rays * (height / np.where(seen, falling, 1))[..., None]
    way = hits[:, :, 1] - hits[:, :, 0]
    way -= (way * up[:, None]).sum(axis=-1, keepdims=True) * up[:, None]
    size = np.linalg.norm(way, axis=-1, keepdims=True)
    sound = seen.all(axis=-1)[..., None] & (size > 1e-3)
    heading = np.where(sound, way / np.maximum(size, 1e-9), forward[:, None])
    return np.asarray(below + (np.array(shape.before) * shanks[..., None])[..., None] * heading[:, :, None])
