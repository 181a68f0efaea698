"""BlazePose's person detector on LiteRT, as in MediaPipe's published graph `pose_detection_cpu`.

Each detection includes two points: the middle of the hips, and a point on the circle around the whole body. They
determine the size and rotation of the region around the person.

Source: Bazarevsky et al., BlazePose: On-device Real-time Body Pose tracking, 2020, arXiv:2006.10204. The constants are
taken from the graph in google-ai-edge/mediapipe 0.10.21.
"""

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from pose.networks import crops
from pose.networks.litert import LiteRTModel, sigmoid
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.structures.types import F32, U8, Boxes

SIDE = 224
REGION_SCALE = 1.25
STRIDES = (8, 16, 32, 32, 32)
ANCHORS_PER_STRIDE = 2
# MediaPipe's default 0.5 also detects furniture: on `walk-by.mp4` the foot of a table, with scores up to 0.59.
SCORE_THRESHOLD = 0.6
# Half width and half height of a person's box relative to the radius of the circle around the body.
BODY_EXTENT = (0.5, 1.0)
MAX_CANDIDATES = 300  # with the highest scores; at a threshold near 0 there are thousands


class BlazePoseDetector:
    """Person detector that also returns the rotated image regions that BlazePose's landmark network needs."""

    name = "blazepose"

    def __init__(
        self,
        *,
        model: Path,
        options: StageOptions = DEFAULT_OPTIONS,
        overlap_threshold: float = 0.3,
    ) -> None:
        """Load the network; PoseError if the file cannot be loaded."""
        self._network = LiteRTModel(model, options.threads)
        self._anchors = anchors()
        self._score_threshold = options.min_score_or(SCORE_THRESHOLD)
        self._overlap_threshold = overlap_threshold

    def detect(self, images: Sequence[U8]) -> list[Boxes]:
        """Return the people in each (H, W, 3) uint8 RGB image, sorted by descending score."""
        return [self._detect(image) for image in images]

    def _detect(self, image: U8) -> Boxes:
        matrix = crops.crop_matrices(crops.letterbox_region(image, (SIDE, SIDE)), (SIDE, SIDE))
        crop = crops.crop(image, matrix[0], (SIDE, SIDE), cv2.BORDER_CONSTANT)
        tensor = self._network.input()
        np.multiply(crop, np.float32(2 / 255), out=tensor[0])
        np.subtract(tensor, np.float32(1), out=tensor)
        del tensor
        rows, logits = (np.asarray(output, np.float32) for output in self._network.run())
        scores = sigmoid(logits[0, :, 0])
        keep = scores >= self._score_threshold
        found, scores = crops.weighted_nms(
            decode(rows[0][keep], self._anchors[keep]), scores[keep], self._overlap_threshold, MAX_CANDIDATES
        )
        if not len(found):
            return Boxes.empty()
        points = crops.apply_affine(matrix, found.reshape(1, -1, 2) * SIDE).reshape(-1, 6, 2)
        return _boxes(points, scores)


def _boxes(points: F32, scores: F32) -> Boxes:
    """Convert decoded rows to boxes and regions: corners, middle of the hips, a point on the circle, two unused."""
    hips, rims = points[:, 2], points[:, 3]
    up = rims - hips
    side = np.stack([-up[:, 1], up[:, 0]], axis=1)
    reach = np.abs(up) * BODY_EXTENT[1] + np.abs(side) * BODY_EXTENT[0]
    xyxy = np.concatenate([hips - reach, hips + reach], axis=1)
    return Boxes(xyxy, scores.astype(np.float32), crops.regions_from_vectors(hips, rims, REGION_SCALE))


def anchors() -> F32:
    """Return the centres (2254, 2) of the anchors, x and y in [0, 1], in the order of the network's outputs."""
    layers = []
    for stride in dict.fromkeys(STRIDES):
        cells = SIDE // stride
        centres = (np.arange(cells, dtype=np.float32) + 0.5) / cells
        grid = np.stack(np.meshgrid(centres, centres), axis=-1).reshape(-1, 2)
        layers.append(np.repeat(grid, ANCHORS_PER_STRIDE * STRIDES.count(stride), axis=0))
    return np.concatenate(layers)


def decode(rows: F32, centres: F32) -> F32:
    """Decode outputs (N, 12) to box corners, and x, y of hips' middle, circle point and two unused ones."""
    scaled = rows / np.float32(SIDE)
    points = scaled[:, 4:].reshape(-1, 4, 2) + centres[:, None]
    middle, half = scaled[:, :2] + centres, scaled[:, 2:4] / 2
    return np.concatenate([middle - half, middle + half, points.reshape(-1, 8)], axis=1)
