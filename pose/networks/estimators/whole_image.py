"""Estimators whose network finds all people and their joints in one pass: YOLO pose, MoveNet MultiPose.

The official weights are AGPL-3.0. Source: Maji et al., YOLO-Pose: Enhancing YOLO for Multi Person Pose Estimation Using
Object Keypoint Similarity Loss, 2022, arXiv:2204.06806. The networks are those of Ultralytics.
"""

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from pose.errors import PoseError
from pose.networks import crops
from pose.networks.multipose import MultiPoseNetwork
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.networks.weights import locate
from pose.networks.whole_image import ImageDetections, WholeImageNetwork
from pose.networks.yolo import load_yolo
from pose.structures.skeletons import COCO17
from pose.structures.types import F32, U8, Boxes, Keypoints2D, Regions

BOX_TO_REGION = 1.25
# Minimum overlap (IoU) between the expected square of a crop's person and the square of a detection in the crop.
MIN_SAME_PERSON_IOU = 0.3


class WholeImageEstimator:
    """Estimator of COCO-17 joints. `find` processes whole images, and `estimate` processes crops of people."""

    skeleton = COCO17

    def __init__(self, network: WholeImageNetwork) -> None:
        """Wrap a loaded network."""
        self._network = network
        self.device = network.device

    def find(self, images: Sequence[U8]) -> list[tuple[Boxes, Keypoints2D]]:
        """Find people and their joints in each (H, W, 3) uint8 RGB image, sorted by descending score."""
        return [self._people(found) for found in self._network(images)]

    def regions(self, boxes: Boxes) -> Regions:
        """Return an upright square around each box, with sides of 1.25 times the longer side of the box."""
        return crops.square_regions(boxes.xyxy, BOX_TO_REGION)

    def estimate(self, images: Sequence[U8], regions: Sequence[Regions]) -> list[Keypoints2D]:
        """Estimate the joints of the person in the middle of every region; confidence 0 if no person is found."""
        size = (self._network.side, self._network.side)
        matrices = [crops.crop_matrices(rows, size) for rows in regions]
        found = self._network(
            [
                crops.crop(image, matrix, size, cv2.BORDER_CONSTANT)
                for image, rows in zip(images, matrices, strict=True)
                for matrix in rows
            ]
        )
        ends = np.cumsum([len(rows) for rows in regions])
        return [
            self._crops(found[end - len(rows) : end], transforms, rows)
            for end, transforms, rows in zip(ends, matrices, regions, strict=True)
        ]

    def _people(self, found: ImageDetections) -> tuple[Boxes, Keypoints2D]:
        keypoints = Keypoints2D(
            found.keypoints, found.keypoint_scores, found.scores, crops.square_regions(found.xyxy, BOX_TO_REGION)
        )
        return Boxes(found.xyxy, found.scores), keypoints

    def _crops(self, found: list[ImageDetections], matrices: F32, regions: Regions) -> Keypoints2D:
        """Return one row of joints for each crop; scores 0 and the region unchanged if it contains no person."""
        xy = np.zeros((len(found), len(self.skeleton), 2), np.float32)
        scores = np.zeros(xy.shape[:2], np.float32)
        presence = np.zeros(len(found), np.float32)
        next_regions = [regions[[row]] for row in range(len(found))]
        for row, (people, matrix) in enumerate(zip(found, matrices, strict=True)):
            best = _middle_person(people, self._network.side)
            if best is None:
                continue
            xy[row] = crops.apply_affine(matrix[None], people.keypoints[best][None])[0]
            scores[row], presence[row] = people.keypoint_scores[best], people.scores[best]
            square = crops.square_regions(people.xyxy[[best]], BOX_TO_REGION)
            scale = np.float32(regions.sizes[row, 0] / self._network.side)
            centre = crops.apply_affine(matrix[None], square.centers[None])[0]
            next_regions[row] = Regions(centre, square.sizes * scale, regions.angles[[row]])
        return Keypoints2D(xy, scores, presence, Regions.concatenate(next_regions))


def _middle_person(people: ImageDetections, side: int) -> int | None:
    """Return the row of the person for which a crop of `side` px was most likely made, or None."""
    # A crop is a square with a margin around a person. The detection is chosen whose score times overlap (IoU) with the
    # crop without its margin is largest. Boxes are extended to squares first, so that narrow boxes count as much as
    # wide ones.
    margin = side * (1 - 1 / BOX_TO_REGION) / 2
    person_square = np.array([[margin, margin, side - margin, side - margin]], np.float32)
    squares = crops.region_boxes(crops.square_regions(people.xyxy, 1))
    overlap = crops.box_iou(person_square, squares)[0]
    fitness = np.where(overlap >= MIN_SAME_PERSON_IOU, overlap * people.scores, 0)
    return int(fitness.argmax()) if fitness.any() else None


GRAPH = "movenet-multipose-graph"


class MoveNetMultiPose(WholeImageEstimator):
    """Estimator of COCO-17 joints of up to six people, in whole images or in crops, on the CPU."""

    name = "movenet-multipose"

    def __init__(self, *, model: Path, options: StageOptions = DEFAULT_OPTIONS) -> None:
        """Load the network; PoseError if the weights cannot be loaded."""
        super().__init__(MultiPoseNetwork(locate(GRAPH), model, options))


class YoloPose(WholeImageEstimator):
    """Estimator of COCO-17 joints with YOLO, in whole images or in crops."""

    name = "yolo-pose"

    def __init__(self, *, model: Path, options: StageOptions = DEFAULT_OPTIONS) -> None:
        """Load the network; PoseError if options do not fit, or it does not have 17 joints."""
        network = load_yolo(model, "pose", options)
        if network.joints != len(COCO17):
            raise PoseError(f"{model}: outputs {network.joints} joints; yolo-pose expects the 17 of COCO")
        super().__init__(network)
