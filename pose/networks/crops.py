"""Rotated crops of images, and the mapping back to the whole image.

A crop of s = (width, height) px shows one region with a centre, a size and an angle. The point u in crop px is at
centre + R(angle) (u - s / 2) * size / s in the image. Coordinates are OpenCV's, with (0, 0) at a pixel centre.
MediaPipe and MMPose use the same convention.
"""

from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F32, F64, U8, Regions

Floats = TypeVar("Floats", F32, F64)


def crop_matrices(regions: Regions, size: tuple[int, int]) -> F32:
    """Return the affine maps (P, 2, 3) from crop px to px of the image of the regions."""
    cos, sin = np.cos(regions.angles), np.sin(regions.angles)
    scale = regions.sizes / np.array(size, np.float32)
    matrices = np.empty((len(regions), 2, 3), np.float32)
    matrices[:, 0, 0] = cos * scale[:, 0]
    matrices[:, 0, 1] = -sin * scale[:, 1]
    matrices[:, 1, 0] = sin * scale[:, 0]
    matrices[:, 1, 1] = cos * scale[:, 1]
    matrices[:, :, 2] = regions.centers - matrices[:, :, :2] @ (np.array(size, np.float32) / 2)
    return matrices


def apply_affine(matrices: F32, points: NDArray[np.floating]) -> F32:
    """Map P groups of N points (P, N, 2) by one affine matrix (2, 3) per group, (P, 2, 3)."""
    mapped = points @ matrices[:, :, :2].transpose(0, 2, 1) + matrices[:, None, :, 2]
    return mapped.astype(np.float32, copy=False)


def crop(image: U8, matrix: F32, size: tuple[int, int], border: int = cv2.BORDER_REPLICATE) -> U8:
    """Cut a rotated crop (height, width, 3) out of an image, with bilinear interpolation."""
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return np.asarray(cv2.warpAffine(image, matrix, size, flags=flags, borderMode=border), np.uint8)


def letterbox_region(image: U8, size: tuple[int, int]) -> Regions:
    """Return the region that contains the whole image, centred, with the aspect ratio of a crop."""
    height, width = image.shape[:2]
    scale = max(width / size[0], height / size[1])
    return Regions(
        np.array([[width / 2, height / 2]], np.float32),
        np.array([[size[0] * scale, size[1] * scale]], np.float32),
        np.zeros(1, np.float32),
    )


def regions_from_vectors(starts: F32, ends: F32, scale: float) -> Regions:
    """Return squares around `starts` (P, 2) px with `ends` up, of half side `scale` times their distance."""
    vectors = ends - starts
    sides = 2 * scale * np.hypot(vectors[:, 0], vectors[:, 1])
    angles = np.pi / 2 - np.arctan2(-vectors[:, 1], vectors[:, 0])
    angles = np.mod(angles + np.pi, 2 * np.pi) - np.pi
    return Regions(starts, np.repeat(sides[:, None], 2, axis=1), angles.astype(np.float32))


def square_regions(xyxy: F32, scale: float) -> Regions:
    """Return upright squares around boxes (P, 4) xyxy, with sides of `scale` times the longer side of each box."""
    low, high = xyxy[:, :2], xyxy[:, 2:]
    sides = (high - low).max(axis=1, keepdims=True) * np.float32(scale)
    return Regions((low + high) * np.float32(0.5), np.repeat(sides, 2, axis=1), np.zeros(len(xyxy), np.float32))


def outside(points: NDArray[np.floating], image: U8) -> NDArray[np.bool_]:
    """Return a mask (...) of the points (..., 2) px that lie outside the (H, W, 3) image."""
    height, width = image.shape[:2]
    beyond = (points < -0.5) | (points > np.array([width, height], np.float32) - 0.5)
    return np.asarray(beyond.any(axis=-1))


def bounds(points: F32, valid: NDArray[np.bool_]) -> F32:
    """Return the bounding box of the valid points of each person, (P, 4) xyxy."""
    low = high = points
    if not valid.all():
        keep = (valid | ~valid.any(axis=1, keepdims=True))[..., None]
        low, high = np.where(keep, points, np.inf), np.where(keep, points, -np.inf)
    low, high = low.min(axis=1), high.max(axis=1)
    return np.concatenate([low, high], axis=1).astype(np.float32)


def region_boxes(regions: Regions) -> F32:
    """Return the boxes (P, 4), xyxy, of the regions, ignoring their rotation."""
    half = regions.sizes / 2
    return np.concatenate([regions.centers - half, regions.centers + half], axis=1)


def box_iou(a: Floats, b: Floats) -> Floats:
    """Return the intersection over union (P, Q) of xyxy boxes (P, 4) and (Q, 4); 0 if both boxes are empty."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:], b[None, :, 2:])
    shared = _areas(high - low)
    union = _areas(a[:, 2:] - a[:, :2])[:, None] + _areas(b[:, 2:] - b[:, :2])[None, :] - shared
    result: Floats = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return result


def _areas(sides: Floats) -> Floats:
    """Return the areas (...) of boxes with sides (..., 2), or 0 where a side is negative."""
    sides = np.maximum(sides, 0)
    return sides[..., 0] * sides[..., 1]


def weighted_nms(found: F32, scores: F32, overlap: float, max_candidates: int | None = None) -> tuple[F32, F32]:
    """Replace overlapping detections (N, D), boxes first, by score-weighted means; return them and top scores."""
    order = np.argsort(-scores, kind="stable")[:max_candidates]
    found, scores = found[order], scores[order]
    columns = found.shape[1]
    merged, best = [], []
    while len(found):
        group = box_iou(found[:1, :4], found[:, :4])[0] > overlap
        group[0] = True
        merged.append(np.average(found[group], axis=0, weights=scores[group]))
        best.append(scores[0])
        found, scores = found[~group], scores[~group]
    return np.array(merged, np.float32).reshape(-1, columns), np.array(best, np.float32)
