"""MoveNet (single pose, Lightning and Thunder): COCO-17 joints of the person in a square crop.

Source: TensorFlow's model card of MoveNet.SinglePose, 2021. As in its published tutorial, the joints of one frame
determine the crop for the next frame.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError
from pose.networks import crops
from pose.networks.graph_model import convert
from pose.networks.litert import LiteRTModel
from pose.networks.onnx import open_session
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.networks.weights import locate
from pose.structures.skeletons import COCO17
from pose.structures.types import F32, U8, Array, Boxes, Keypoints2D, Regions

THUNDER_GRAPH = "movenet-thunder-graph"

BOX_TO_REGION = 1.25
# Rule of the tutorial for the next crop: a joint is visible above MIN_JOINT_SCORE. Half a side is the larger of
# TRUNK_SCALE times the distance from the hips to the furthest trunk joint, and BODY_SCALE times that to the furthest
# visible joint.
MIN_JOINT_SCORE = 0.2
TRUNK_SCALE = 1.9
BODY_SCALE = 1.2
SHOULDERS = [COCO17.index(name) for name in ("left_shoulder", "right_shoulder")]
HIPS = [COCO17.index(name) for name in ("left_hip", "right_hip")]
# Number of highest joint scores whose mean is the confidence. On `walk-by.mp4` and `street.mp4` it is at least 0.53 for
# clearly visible people, and at most 0.37 in crops without people. A man with folded arms in Ultralytics' `bus.jpg` has
# 0.49.
CONFIDENCE_JOINTS = 8


class CropNetwork(Protocol):
    """Network with one image (1, S, S, 3) as its input."""

    def input(self) -> Array:
        """Return the writable input tensor."""
        ...

    def run(self) -> list[Array]:
        """Run the network and return its outputs."""
        ...


class GraphModel:
    """Network in TensorFlow.js' format on ONNX Runtime, with an input of fixed shape."""

    def __init__(self, graph: Path, weights: Path, options: StageOptions) -> None:
        """Load the network from its graph (JSON) and its weights."""
        self._session = open_session(weights, "cpu", options.threads, content=convert(graph, weights))
        (source,) = self._session.get_inputs()
        self._name: str = source.name
        if not all(isinstance(side, int) for side in source.shape):
            raise PoseError(f"{graph}: its input has the shape {source.shape}; expected a fixed one")
        self._input = np.zeros(source.shape, np.int64)

    def input(self) -> Array:
        """Return the writable input tensor."""
        return self._input

    def run(self) -> list[Array]:
        """Run the network and return its outputs."""
        return list(self._session.run(None, {self._name: self._input}))


class MoveNet:
    """Estimator of 17 joints in each region, which determine the region for the next frame, on the CPU."""

    name = "movenet"
    skeleton = COCO17

    def __init__(self, *, model: Path, options: StageOptions = DEFAULT_OPTIONS) -> None:
        """Load Lightning (LiteRT) or Thunder (.bin of a graph model); PoseError if a file is invalid."""
        if model.suffix == ".bin":
            self.name = "movenet-thunder"
            self._network: CropNetwork = GraphModel(locate(THUNDER_GRAPH), model, options)
        else:
            self._network = LiteRTModel(model, options.threads)
        self._side = int(self._network.input().shape[1])

    def regions(self, boxes: Boxes) -> Regions:
        """Return an upright square around each box, with sides of 1.25 times the longer side of the box."""
        return crops.square_regions(boxes.xyxy, BOX_TO_REGION)

    def estimate(self, images: Sequence[U8], regions: Sequence[Regions]) -> list[Keypoints2D]:
        """Estimate joints in every region of every image.

        The confidence of a person is the mean of the eight highest joint scores. Joints outside the image get score 0.
        Crops are processed one at a time, because the published files have no batch dimension.
        """
        return [self._estimate(image, rows) for image, rows in zip(images, regions, strict=True)]

    def _estimate(self, image: U8, regions: Regions) -> Keypoints2D:
        size = (self._side, self._side)
        matrices = crops.crop_matrices(regions, size)
        rows = np.empty((len(regions), len(self.skeleton), 3), np.float32)
        for row, matrix in enumerate(matrices):
            self._network.input()[0] = crops.crop(image, matrix, size, cv2.BORDER_CONSTANT)
            rows[row] = self._network.run()[0].reshape(rows.shape[1:])  # ValueError for other networks
        xy = crops.apply_affine(matrices, rows[:, :, 1::-1] * np.float32(self._side))
        scores = np.where(crops.outside(xy, image), np.float32(0), rows[:, :, 2])
        presence = np.sort(rows[:, :, 2], axis=1)[:, -CONFIDENCE_JOINTS:].mean(axis=1)
        return Keypoints2D(xy, scores, presence, _next_regions(xy, rows[:, :, 2], regions))


def _next_regions(xy: F32, scores: F32, regions: Regions) -> Regions:
    """Return upright squares around the hips for the next frame, unchanged without a visible shoulder and hip."""
    visible = scores > MIN_JOINT_SCORE
    distances = np.abs(xy - xy[:, HIPS].mean(axis=1, keepdims=True)).max(axis=2)
    trunk, body = distances[:, SHOULDERS + HIPS].max(axis=1), np.where(visible, distances, 0).max(axis=1)
    sides = 2 * np.maximum(TRUNK_SCALE * trunk, BODY_SCALE * body)
    trunk_visible: NDArray[np.bool_] = np.logical_and(visible[:, SHOULDERS].any(axis=1), visible[:, HIPS].any(axis=1))
    return Regions(
        np.where(trunk_visible[:, None], xy[:, HIPS].mean(axis=1), regions.centers),
        np.where(trunk_visible[:, None], sides[:, None], regions.sizes).astype(np.float32),
        np.where(trunk_visible, np.float32(0), regions.angles),
    )
