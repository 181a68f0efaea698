"""MediaPipe's hand networks on LiteRT: 21 points in a crop, and a palm detector, as in its published graphs.

Source: Zhang et al., MediaPipe Hands: On-device Real-time Hand Tracking, 2020, arXiv:2006.10214; constants of the
graphs `hand_landmark_cpu`, `palm_detection_cpu`, `hand_landmark_landmarks_to_roi` and `palm_detection_detection_to_roi`
of google-ai-edge/mediapipe 0.10.21.
"""

from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from pose.networks import crops
from pose.networks.litert import LiteRTModel, sigmoid
from pose.networks.weights import locate
from pose.structures.hand_points import INDEX_KNUCKLE, MIDDLE_KNUCKLE, POINTS, RING_KNUCKLE, WRIST
from pose.structures.types import F32, U8, Regions

WEIGHTS = ("hand-landmark-full", "palm-detector-full")
SIDE = 224
PALM_SIDE = 192
_OUTPUTS = (0, 1, 3)  # points, presence, points in metres; the side comes from the arm, not from the network
_TRACK_SCALE, _TRACK_SHIFT = 2.0, -0.1
_PALM_SCALE, _PALM_SHIFT = 2.6, -0.5
_PALM_STRIDES = ((8, 2), (16, 6))  # (stride, anchors per cell)
_MIN_PALM_SCORE = 0.5
_PALM_NMS_IOU = 0.3
_PALM_WRIST, _PALM_KNUCKLE = 0, 2
_STABLE = [0, 1, 2, 3, 5, 6, 9, 10, 13, 14, 17, 18]  # points without the outer halves of the fingers


class HandOutputs(NamedTuple):
    """Network outputs for R regions."""

    points: F32  # (R, 21, 2) px of the whole image, in the order of `pose.structures.hand_points`
    shapes: F32  # (R, 21, 3) m, the same points relative to the wrist, in camera axes (x right, y down, z forward)
    presence: F32  # (R,) probability that the region contains a hand


class HandNetwork:
    """Hand landmark network, which predicts 21 points in each region of an image."""

    def __init__(self, *, model: Path | None = None, threads: int = 1) -> None:
        """Load the network; PoseError if the weights are not available or not a valid network."""
        self._network = LiteRTModel(model or locate(WEIGHTS[0]), threads, _OUTPUTS)

    def estimate(self, image: U8, regions: Regions) -> HandOutputs:
        """Estimate the hand in each region of an (H, W, 3) uint8 RGB image."""
        matrices = crops.crop_matrices(regions, (SIDE, SIDE))
        raw = np.empty((2, len(regions), POINTS, 3), np.float32)
        presence = np.empty(len(regions), np.float32)
        for row, matrix in enumerate(matrices):
            crop = crops.crop(image, matrix, (SIDE, SIDE), cv2.BORDER_CONSTANT)
            np.multiply(crop, np.float32(1 / 255), out=self._network.input()[0])
            points, present, metres = self._network.run()
            raw[0, row], raw[1, row] = points.reshape(POINTS, 3), metres.reshape(POINTS, 3)
            presence[row] = present[0, 0]
            del points, present, metres
        points = crops.apply_affine(matrices, raw[0, :, :, :2])
        shapes = raw[1] - raw[1][:, :1]
        cos, sin = np.cos(regions.angles)[:, None], np.sin(regions.angles)[:, None]
        x, y = shapes[..., 0].copy(), shapes[..., 1].copy()
        shapes[..., 0], shapes[..., 1] = cos * x - sin * y, sin * x + cos * y
        return HandOutputs(points, shapes, presence)


class PalmDetector:
    """Palm detection network, which finds hands without tracked people."""

    def __init__(self, *, model: Path | None = None, threads: int = 1, min_score: float = _MIN_PALM_SCORE) -> None:
        """Load the network; PoseError if the weights are not available or not a valid network.

        Args:
            model: LiteRT file; None uses the weights of the catalogue and downloads them if they are missing.
            min_score: Minimum confidence of a palm, 0 to 1.
        """
        self._network = LiteRTModel(model or locate(WEIGHTS[1]), threads)
        self._anchors, self._min_score = _anchors(), min_score

    def detect(self, image: U8, window: Regions | None = None) -> tuple[Regions, F32]:
        """Detect hands by palms in an (H, W, 3) image or region; return regions by descending score, and scores."""
        size = (PALM_SIDE, PALM_SIDE)
        matrix = crops.crop_matrices(window or crops.letterbox_region(image, size), size)
        crop = crops.crop(image, matrix[0], size, cv2.BORDER_CONSTANT)
        np.multiply(crop, np.float32(1 / 255), out=self._network.input()[0])
        rows, logits = (np.asarray(output, np.float32) for output in self._network.run())
        scores = sigmoid(logits[0, :, 0])
        keep = scores >= self._min_score
        found, anchors = rows[0][keep] / np.float32(PALM_SIDE), self._anchors[keep]
        middles, half = found[:, :2] + anchors, found[:, 2:4] / 2
        boxes = np.concatenate([middles - half, middles + half], axis=1)
        points = found[:, 4:].reshape(-1, 7, 2) + anchors[:, None]
        detections = np.concatenate([boxes, points.reshape(-1, 14)], axis=1)
        merged, best = crops.weighted_nms(detections, scores[keep], _PALM_NMS_IOU)
        on_image = crops.apply_affine(matrix, merged.reshape(1, -1, 2) * PALM_SIDE).reshape(-1, 9, 2)
        return _palm_regions(on_image), best


def tracked_regions(points: F32) -> Regions:
    """Return search regions for the next frame: squares around the points (R, 21, 2) px of R hands.

    They are rotated so that the fingers point to the upper side of the square.
    """
    knuckles = (points[:, INDEX_KNUCKLE] + points[:, RING_KNUCKLE]) / 2
    along = (points[:, MIDDLE_KNUCKLE] + knuckles) / 2 - points[:, WRIST]
    return _around(points[:, _STABLE], np.asarray(along, np.float32), _TRACK_SCALE, _TRACK_SHIFT)


def _palm_regions(points: F32) -> Regions:
    """Return the regions of hands around palms (R, 9, 2) px: two corners of the box and seven points."""
    palm = points[:, 2:]
    along = palm[:, _PALM_KNUCKLE] - palm[:, _PALM_WRIST]
    centers = np.asarray((points[:, 0] + points[:, 1]) / 2, np.float32)
    sides = np.abs(points[:, 1] - points[:, 0]).max(axis=1)
    return shifted(centers, sides, along, _PALM_SCALE, _PALM_SHIFT)


def _around(points: F32, along: F32, scale: float, shift: float) -> Regions:
    """Return squares around points (R, N, 2) px, rotated so that `along` (R, 2) points up, then `shifted`."""
    angles = np.pi / 2 - np.arctan2(-along[:, 1], along[:, 0])
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    x = cos * points[..., 0] + sin * points[..., 1]
    y = -sin * points[..., 0] + cos * points[..., 1]
    low, high = np.stack([x.min(1), y.min(1)], 1), np.stack([x.max(1), y.max(1)], 1)
    middle = (low + high) / 2
    cos, sin = cos[:, 0], sin[:, 0]
    centers = np.stack([cos * middle[:, 0] - sin * middle[:, 1], sin * middle[:, 0] + cos * middle[:, 1]], axis=1)
    return shifted(centers, (high - low).max(axis=1), along, scale, shift)


def shifted(centers: F32, sides: F32, along: F32, scale: float, shift: float) -> Regions:
    """Return squares (R) scaled and shifted (in sides, downwards), rotated so that `along` points up."""
    angles = np.pi / 2 - np.arctan2(-along[:, 1], along[:, 0])
    angles = np.mod(angles + np.pi, 2 * np.pi) - np.pi
    moved = np.stack([-np.sin(angles), np.cos(angles)], axis=1) * (shift * sides)[:, None]
    sizes = np.repeat((scale * sides)[:, None], 2, axis=1)
    return Regions((centers + moved).astype(np.float32), sizes.astype(np.float32), angles.astype(np.float32))


def _anchors() -> F32:
    """Return the anchor centres (2016, 2), x and y in [0, 1]."""
    layers = []
    for stride, count in _PALM_STRIDES:
        cells = PALM_SIDE // stride
        centres = (np.arange(cells, dtype=np.float32) + 0.5) / cells
        layers.append(np.repeat(np.stack(np.meshgrid(centres, centres), axis=-1).reshape(-1, 2), count, axis=0))
    return np.concatenate(layers)
