"""BlazePose's landmark network on LiteRT, as in MediaPipe's published graph `pose_landmark_by_roi_cpu`.

Source: Bazarevsky et al., BlazePose: On-device Real-time Body Pose tracking, 2020, arXiv:2006.10204. The constants are
taken from the graph in google-ai-edge/mediapipe 0.10.21.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pose.networks import crops
from pose.networks.litert import LiteRTModel, sigmoid
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.structures.skeletons import BLAZEPOSE33
from pose.structures.types import F32, U8, Boxes, Keypoints2D, Regions

SIDE = 256
# Landmarks, presence and heat maps. Segmentation and metric landmarks are unused; they would take a third of the time.
OUTPUTS = (0, 1, 3)
REGION_SCALE = 1.25
LANDMARKS = 39  # 33 of the body, two that determine the next region, four unused
REGION_ROWS = (33, 34)
REFINE_KERNEL = 7
REFINE_MIN_CONFIDENCE = 0.5
_OFFSETS = np.arange(REFINE_KERNEL) - REFINE_KERNEL // 2
# Side of the region relative to the longer side of the box, for detections without a region. MediaPipe's regions
# contain a circle around the body, which is slightly larger than the box.
BOX_TO_REGION = 1.25


class BlazePose:
    """Estimator of 33 body landmarks in each region, which determine the region for the next frame."""

    skeleton = BLAZEPOSE33

    def __init__(
        self,
        *,
        model: Path,
        variant: Literal["full", "lite", "heavy"] = "full",
        options: StageOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Load the LiteRT network of a variant; PoseError if the file cannot be loaded."""
        self.name = f"blazepose-{variant}"
        self._network = LiteRTModel(model, options.threads, OUTPUTS)

    def regions(self, boxes: Boxes) -> Regions:
        """Return each person's region from the detector, else squares of 1.25 times the box's longer side."""
        if boxes.regions is not None:
            return boxes.regions
        low, high = boxes.xyxy[:, :2], boxes.xyxy[:, 2:]
        centers = np.asarray((low + high) / 2, np.float32)
        sides = np.asarray((high - low).max(axis=1, keepdims=True) * BOX_TO_REGION, np.float32)
        return Regions(centers, np.repeat(sides, 2, axis=1), np.zeros(len(boxes), np.float32))

    def estimate(self, images: Sequence[U8], regions: Sequence[Regions]) -> list[Keypoints2D]:
        """Estimate landmarks in every region of every image.

        The score of a keypoint is the smaller of its visibility and presence probabilities. Keypoints outside the image
        get score 0. Crops are processed one at a time, because a batch is not faster.
        """
        return [self._estimate(image, rows) for image, rows in zip(images, regions, strict=True)]

    def _estimate(self, image: U8, regions: Regions) -> Keypoints2D:
        matrices = crops.crop_matrices(regions, (SIDE, SIDE))
        landmarks = np.empty((len(regions), LANDMARKS, 5), np.float32)
        presence = np.empty(len(regions), np.float32)
        for row, matrix in enumerate(matrices):
            crop = crops.crop(image, matrix, (SIDE, SIDE))
            np.multiply(crop, np.float32(1 / 255), out=self._network.input()[0])
            raw, present, heat = self._network.run()
            landmarks[row] = raw.reshape(LANDMARKS, 5)
            landmarks[row, :, :2] = refine(landmarks[row, :, :2] / np.float32(SIDE), heat[0]) * SIDE
            presence[row] = present[0, 0]
            del raw, present, heat
        xy = crops.apply_affine(matrices, landmarks[:, :, :2])
        body = len(BLAZEPOSE33)
        scores = sigmoid(landmarks[:, :body, 3:]).min(axis=2)
        scores[_outside(xy[:, :body], image)] = 0
        start, end = REGION_ROWS
        next_regions = crops.regions_from_vectors(xy[:, start], xy[:, end], REGION_SCALE)
        return Keypoints2D(xy[:, :body], scores.astype(np.float32), presence, next_regions)


def _outside(xy: F32, image: U8) -> NDArray[np.bool_]:
    height, width = image.shape[:2]
    beyond = (xy < -0.5) | (xy > np.array([width, height], np.float32) - 0.5)
    return np.asarray(beyond.any(axis=-1))


def refine(points: F32, heat: F32) -> F32:
    """Move points (J, 2) to the weighted mean of a 7 x 7 window of their heat maps (S, S, J), if it is certain."""
    side = heat.shape[0]
    cells = (points * side).astype(np.int64)  # rounds towards zero
    around = cells[:, :, None] + _OFFSETS
    valid = (around >= 0) & (around < side)
    columns, rows = around.clip(0, side - 1).transpose(1, 0, 2)
    window = heat[rows[:, :, None], columns[:, None, :], np.arange(len(points))[:, None, None]]
    weights = sigmoid(window) * (valid[:, 1, :, None] & valid[:, 0, None, :])
    refined = ((cells >= 0) & (cells < side)).all(axis=1) & (weights.max(axis=(1, 2)) >= REFINE_MIN_CONFIDENCE)
    by_column, by_row = weights.sum(axis=1), weights.sum(axis=2)
    moment = np.stack([(by_column * columns).sum(axis=1), (by_row * rows).sum(axis=1)], axis=1)
    total = np.where(refined, by_row.sum(axis=1), 1)[:, None] * side
    return np.where(refined[:, None], moment / total, points).astype(np.float32)
