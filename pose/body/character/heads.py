"""Rotations of heads from nose, eyes and ears in the image.

The lifted joints give the direction from neck to crown, and the chest gives the direction of the face. The points of
the face in the image correct both directions. The correction is the maximum a posteriori rotation for Gaussian errors
of the points and a Gaussian prior, found by Gauss-Newton. Only differences of points are used, so an error in the
position of the lifted head does not rotate it. A head seen from behind is not corrected.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from pose.body.character.shape import HEAD_POINT, NECK_POINT
from pose.body.skeleton import NAMES, ORDER, aimed, thorax_frame
from pose.structures import rotations
from pose.structures.defaults import SEEN_SCORE
from pose.structures.rotations import unit
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, F64, Flags

# Positions from the base of the skull, x to the left, y up, z forward, m: nose and ears as in the lifter's training
# data, eyes from the breadths and heights of adult faces.
_POINTS = {
    "nose": (0.0, 0.035, 0.115), "left_eye": (0.032, 0.07, 0.085), "right_eye": (-0.032, 0.07, 0.085),
    "left_ear": (0.0725, 0.05, 0.01), "right_ear": (-0.0725, 0.05, 0.01),
}  # fmt: skip
_MIN_POINTS = 3
_POINT_SIGMA_M = 0.02  # standard deviation of a point in the image, m at the distance of the head
_PRIOR_SIGMA_RAD = np.array([0.25, 0.7, 0.25])  # prior of the correction about x (nod), y (turn) and z (tilt), rad
# Networks guess the face of a head seen from behind. The weight of the points falls from 1 in profile to 0 for a head
# that is turned 30 degrees further away, where the z component of the face direction is -1 / _BEHIND_SLOPE.
_BEHIND_SLOPE = 2.0
_STEPS = 6
_MAX_STEP_RAD = 0.6  # maximum change in an iteration, rad
SMOOTH_S = 0.07  # s, standard deviation of the Gaussian window for recordings
STREAM_S = 0.1  # s, time constant of the filter for streams
_NECK, _HEAD = NAMES.index("neck"), NAMES.index("head")


@dataclass(frozen=True, slots=True)
class SeenHeads:
    """Head points in the images of T poses: nose, left eye, right eye, left ear and right ear."""

    pixels: F64  # (T, 5, 2) px, nose, left eye, right eye, left ear and right ear
    scores: F32  # (T, 5) scores of the points
    focal: F64  # (T, 2) px, focal lengths along x and y

    @classmethod
    def of(cls, skeleton: Skeleton, keypoints: F32, scores: F32, focal: F64) -> Self | None:
        """Select the head points from 2D keypoints; None if the skeleton lacks one of the five points."""
        if not skeleton.names or not set(_POINTS) <= set(skeleton.names):
            return None
        at = [skeleton.index(name) for name in _POINTS]
        return cls(keypoints[:, at].astype(np.float64), scores[:, at], np.broadcast_to(focal, (len(keypoints), 2)))


def lifted_heads(ordered: F64) -> F64:
    """Return the head's orientation, (T, 4) quaternions in file axes, from head and chest in `NAMES` order."""
    chest = rotations.from_axes(*thorax_frame(ordered))
    return aimed(chest, unit(HEAD_POINT - NECK_POINT), unit(ordered[:, _HEAD] - ordered[:, _NECK]))


def head_corrections(poses: F64, heads: SeenHeads) -> F64:
    """Compute rotation vectors (T, 3) rad, in the head's frame, that fit lifted heads to the image; 0 if undetected."""
    # `poses` are (T, 17, 3) m in the camera frame, x right, y up, z towards the camera. The correction is applied
    # before the orientation that `lifted_heads` returns.
    ordered = poses[:, ORDER]
    lifted = lifted_heads(ordered)
    middle = (ordered[:, _NECK] + ordered[:, _HEAD]) / 2
    known: Flags = (heads.scores >= SEEN_SCORE) & np.isfinite(heads.pixels).all(axis=-1)
    known &= ((known.sum(axis=1) >= _MIN_POINTS) & (middle[:, 2] < 0))[:, None]
    depth = np.where(known.any(axis=1), -middle[:, 2], 1.0)[:, None]
    # Linearised projection: a short vector (x, y, z) at the head shifts its image by (x, y) plus z times the slope of
    # the viewing ray.
    slope = np.tile(np.eye(2, 3), (len(poses), 1, 1))
    slope[:, :, 2] = middle[:, :2] / depth
    mean_weights = known / np.maximum(known.sum(axis=1, keepdims=True), 1)
    observed = np.where(known[..., None], heads.pixels, 0.0) * (1, -1) / (heads.focal / depth)[:, None]
    observed = observed - np.einsum("tp,tpi->ti", mean_weights, observed)[:, None]
    model = np.array(list(_POINTS.values()))
    model = model - (mean_weights @ model)[:, None]
    axes = np.stack([rotations.rotate(lifted, axis) for axis in np.eye(3)], axis=1)
    prior = np.einsum("a,tai,taj->tij", 1 / _PRIOR_SIGMA_RAD**2, axes, axes)
    facing = rotations.rotate(lifted, np.array([0.0, 0.0, 1.0]))[:, 2]
    weight = known / _POINT_SIGMA_M**2 * np.clip(1 + _BEHIND_SLOPE * facing, 0, 1)[:, None]
    head = lifted
    for _ in range(_STEPS):
        rotated_model = rotations.rotate(head[:, None], model)
        residual = observed - np.einsum("tki,tpi->tpk", slope, rotated_model)
        moves = np.cross(rotated_model[:, :, None], slope[:, None])  # derivative of the projected points by a rotation
        normal = prior + np.einsum("tp,tpki,tpkj->tij", weight, moves, moves)
        pull = np.einsum("tp,tpki,tpk->ti", weight, moves, residual)
        pull -= np.einsum("tij,tj->ti", prior, _vectors(rotations.multiply(head, rotations.inverse(lifted))))
        step = np.linalg.solve(normal, pull[..., None])[..., 0]
        size = np.linalg.norm(step, axis=1, keepdims=True)
        step *= np.minimum(1, _MAX_STEP_RAD / np.maximum(size, 1e-12))
        head = rotations.multiply(from_vectors(step), head)
    return np.where(
        known.any(axis=1, keepdims=True), _vectors(rotations.multiply(rotations.inverse(lifted), head)), 0.0
    )


def from_vectors(vectors: F64) -> F64:
    """Convert rotation vectors (..., 3), rad, to quaternions (w, x, y, z), (..., 4)."""
    angle = np.linalg.norm(vectors, axis=-1)
    return rotations.about(vectors / np.maximum(angle, 1e-12)[..., None], angle)


def _vectors(quaternions: F64) -> F64:
    """Convert quaternions (..., 4) to rotation vectors (..., 3) of at most pi rad."""
    quaternions = np.where(quaternions[..., :1] < 0, -quaternions, quaternions)
    size = np.linalg.norm(quaternions[..., 1:], axis=-1, keepdims=True)
    result: F64 = 2 * np.arctan2(size, quaternions[..., :1]) * quaternions[..., 1:] / np.maximum(size, 1e-12)
    return result
