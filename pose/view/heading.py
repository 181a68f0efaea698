"""Viewing direction of a moving camera, drawn as an arrow on the floor of the 3D inset."""

import numpy as np

from pose.structures.types import F32, F64, FrameResult
from pose.world.upright import to_stage

_START = 0.5  # distance of the arrow's start from the centre, as a fraction of the floor's radius
_LENGTH = 0.2  # length of the arrow, as a fraction of the floor's radius
_BARBS = 0.4  # length of the arrow head, as a fraction of the arrow
_MIN_HORIZONTAL = 0.1  # minimum horizontal part of the unit direction; a camera that looks straight down has no heading


def camera_heading(result: FrameResult) -> F64 | None:
    """Return the camera's viewing direction (2,) in the 3D inset: x right, y away; None if constant or unknown."""
    # The rotation from camera to world maps the people's joints in the camera frame to those in the world (Kabsch, Acta
    # Cryst. A32, 1976). A view almost straight down or up has no direction.
    if result.view is None or result.placed is None:
        return None
    camera, world = result.poses.joints, result.placed.joints
    is_finite = np.isfinite(camera).all(axis=(1, 2)) & np.isfinite(world).all(axis=(1, 2))
    if not is_finite.any():
        return None
    left, right = (
        (joints[is_finite] - joints[is_finite].mean(axis=1, keepdims=True)).reshape(-1, 3).astype(np.float64)
        for joints in (camera, world)
    )
    u, _, vt = np.linalg.svd(left.T @ right)
    u[:, -1] *= np.sign(np.linalg.det(u @ vt))
    forward = to_stage((u @ vt)[2])[:2].astype(np.float64)  # row 2: direction of the camera's z axis
    length = float(np.linalg.norm(forward))
    return forward / length if length > _MIN_HORIZONTAL else None


def heading_arrow(result: FrameResult, middle: F32, reach: float) -> F32:
    """Return an arrow (3, 2, 3) m on the inset's floor along the viewing direction; (0, 2, 3) if unknown."""
    forward = camera_heading(result)
    if forward is None:
        return np.zeros((0, 2, 3), np.float32)
    start = middle[:2] - forward * _START * reach
    along = forward * _LENGTH * reach
    across = np.array([-along[1], along[0]])
    segments = np.zeros((3, 2, 3), np.float32)
    segments[:, 0, :2] = start + along
    segments[:, 1, :2] = [start, *(start + along + _BARBS * (sign * across - along) for sign in (-1, 1))]
    return segments
