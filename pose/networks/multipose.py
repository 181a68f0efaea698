"""MoveNet MultiPose (Lightning) on ONNX Runtime: boxes and 17 joints of up to six people.

Source: TensorFlow's model card of MoveNet.MultiPose, 2021, which defines input, outputs and their order.
"""

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from pose.errors import UsageError
from pose.networks.graph_model import convert
from pose.networks.letterbox import fitted_size, round_up
from pose.networks.onnx import open_session
from pose.networks.options import StageOptions
from pose.networks.whole_image import ImageDetections
from pose.structures.skeletons import COCO17
from pose.structures.types import F32, U8

DEFAULT_SIDE = 256  # px, default of the published network
SCORE_THRESHOLD = 0.25
_STEP = 32  # px; sides of the input are multiples of it
_JOINTS = len(COCO17)


class MultiPoseNetwork:
    """A loaded MoveNet MultiPose network."""

    joints = _JOINTS
    device = "cpu"

    def __init__(self, graph: Path, weights: Path, options: StageOptions) -> None:
        """Load the network from TensorFlow.js's graph (JSON) and weights."""
        self.side = options.size or DEFAULT_SIDE  # longer side of the input in px
        if self.side < _STEP or self.side % _STEP:
            raise UsageError(f"image size: {self.side} is not a positive multiple of {_STEP} px")
        self._min_score = options.min_score_or(SCORE_THRESHOLD)
        self._session = open_session(weights, "cpu", options.threads, content=convert(graph, weights))
        self._input: str = self._session.get_inputs()[0].name

    def __call__(self, images: Sequence[U8]) -> list[ImageDetections]:
        """Return the people in each (H, W, 3) uint8 RGB image. Images are processed one at a time."""
        return [self._people(image) for image in images]

    def _people(self, image: U8) -> ImageDetections:
        width, height = fitted_size(image, (self.side, self.side))
        canvas = np.zeros((1, round_up(height, _STEP), round_up(width, _STEP), 3), np.int64)
        canvas[0, :height, :width] = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        (rows,) = self._session.run(None, {self._input: canvas})[0]
        scale = np.array([image.shape[1] / width, image.shape[0] / height], np.float32)
        return people(rows, np.array(canvas.shape[2:0:-1], np.float32) * scale, self._min_score, image)


def people(rows: F32, size: F32, min_score: float, image: U8) -> ImageDetections:
    """Decode the output (6, 56): y, x, score of 17 joints, then top, left, bottom, right and score, in [0, 1]."""
    rows = rows[rows[:, -1] >= min_score]
    rows = rows[np.argsort(-rows[:, -1], kind="stable")]
    joints = rows[:, : 3 * _JOINTS].reshape(-1, _JOINTS, 3)[..., [1, 0, 2]]
    joints[..., :2] *= size
    corners = rows[:, 3 * _JOINTS : -1].reshape(-1, 2, 2)[..., ::-1] * size
    return ImageDetections.within((image.shape[1], image.shape[0]), corners.reshape(-1, 4), rows[:, -1], joints)
