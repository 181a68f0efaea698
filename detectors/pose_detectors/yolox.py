"""YOLOX on ONNX Runtime. This module decodes the outputs and runs non-maximum suppression.

Source: Ge et al., YOLOX: Exceeding YOLO Series in 2021, 2021, arXiv:2107.08430. The thresholds are those of the ONNX
demo in the YOLOX repository.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pose.networks.letterbox import LetterboxTransform, suppress
from pose.networks.onnx import OnnxNetwork
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.structures.types import F32, U8, Boxes

SCORE_THRESHOLD = 0.3
SIDE = 416  # of the small models; files with a fixed size use their own
STRIDES = (8, 16, 32)


class YoloXDetector:
    """Person detector with any YOLOX network that was exported without decoding."""

    name = "yolox"

    def __init__(
        self,
        *,
        model: Path,
        options: StageOptions = DEFAULT_OPTIONS,
        overlap_threshold: float = 0.45,
        classes: Sequence[int] = (0,),
    ) -> None:
        """Load the network; PoseError if the network cannot be loaded with these options."""
        self._network = OnnxNetwork(model, options)
        self.device = self._network.device
        self._input = self._network.input(bgr=True)
        self._side = self._network.input_side(options.size, SIDE, STRIDES[-1])
        self._grid, self._strides = grid(self._side)
        self._score_threshold = options.min_score_or(SCORE_THRESHOLD)
        self._overlap_threshold = overlap_threshold
        self._classes = list(classes)

    def detect(self, images: Sequence[U8]) -> list[Boxes]:
        """Return person boxes of each (H, W, 3) uint8 RGB image, sorted by descending score."""
        if not len(images):
            return []
        samples, fits = self._input.letterboxed(images, (self._side, self._side))
        rows = self._network.run(samples)[0].astype(np.float32)
        return [self._boxes(row, fit) for row, fit in zip(rows, fits, strict=True)]

    def _boxes(self, rows: F32, fit: LetterboxTransform) -> Boxes:
        """Decode network outputs (N, 5 + classes) of one image to boxes in image px."""
        kinds = rows[:, 5:].argmax(axis=1)
        scores = rows[:, 4] * rows[np.arange(len(rows)), 5 + kinds]
        keep = (scores >= self._score_threshold) & np.isin(kinds, self._classes)
        centres = (rows[keep, :2] + self._grid[keep]) * self._strides[keep]
        half = np.exp(rows[keep, 2:4]) * self._strides[keep] / 2
        xyxy, scores = np.concatenate([centres - half, centres + half], axis=1), scores[keep]
        best = suppress(xyxy, scores, self._overlap_threshold)
        return Boxes(fit.boxes_to_image(xyxy[best]), scores[best])


def grid(side: int) -> tuple[F32, F32]:
    """Return column and row (N, 2), and size (N, 1) px, of the candidates' grid cells, by stride 8, 16, 32."""
    cells, strides = [], []
    for stride in STRIDES:
        count = side // stride
        line = np.arange(count, dtype=np.float32)
        cells.append(np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2))
        strides.append(np.full((count * count, 1), stride, np.float32))
    return np.concatenate(cells), np.concatenate(strides)
