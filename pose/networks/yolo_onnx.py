"""YOLO networks exported to ONNX by Ultralytics (v8, 11, 26; detect and pose), on ONNX Runtime.

Boxes and keypoints equal those of the `ultralytics` package, which is not needed. The weights keep the licence of their
authors: the official ones are AGPL-3.0.
"""

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pose.errors import PoseError
from pose.networks.letterbox import LetterboxTransform, fitted_size, round_up, suppress
from pose.networks.onnx import OnnxNetwork
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.networks.whole_image import ImageDetections
from pose.networks.yolo_defaults import DEFAULT_SIDE, MAX_DETECTIONS, OVERLAP_THRESHOLD, SCORE_THRESHOLD, YoloTask
from pose.structures.types import F32, U8


class YoloOnnx:
    """YOLO network exported by Ultralytics, whose metadata must describe task, classes and joints."""

    def __init__(
        self,
        model: Path,
        task: YoloTask,
        options: StageOptions = DEFAULT_OPTIONS,
        overlap_threshold: float = OVERLAP_THRESHOLD,
        classes: tuple[int, ...] = (0,),
    ) -> None:
        self._network = OnnxNetwork(model, options)
        metadata = {key: _literal(value) for key, value in self._network.metadata.items()}
        if metadata.get("task") != task:
            raise PoseError(f"{model}: not a YOLO export for {task!r} (its metadata say {metadata.get('task')!r})")
        self.device: str = self._network.device
        self._input = self._network.input(std=(255.0, 255.0, 255.0))
        self._score_threshold = options.min_score_or(SCORE_THRESHOLD)
        self._overlap_threshold, self._classes = overlap_threshold, classes
        self._stride = int(metadata["stride"])
        self.side = self._network.input_side(options.size, max(metadata.get("imgsz", [DEFAULT_SIDE])), self._stride)
        self.joints, self._values = metadata.get("kpt_shape", (0, 3))

    def __call__(self, images: Sequence[U8]) -> list[ImageDetections]:
        if not len(images):
            return []
        size = self._input_size(images)
        samples, fits = self._input.letterboxed(images, size, centred=True)
        found = self._network.run(samples)[0].astype(np.float32)
        return [self._findings(rows, fit, image) for rows, fit, image in zip(found, fits, images, strict=True)]

    def _input_size(self, images: Sequence[U8]) -> tuple[int, int]:
        """Return width and height of the input in px: least padding if one size is allowed and fits, else a square."""
        square = (self.side, self.side)
        if self._network.shape[2] is not None or len({image.shape for image in images}) > 1:
            return square
        width, height = fitted_size(images[0], square)
        return round_up(width, self._stride), round_up(height, self._stride)

    def _findings(self, output: F32, fit: LetterboxTransform, image: U8) -> ImageDetections:
        """Return the detections in an image, from final rows (N, 6 + joint values) or the output of the head."""
        width = self.joints * self._values
        rows = output if output.shape[1] == 6 + width else self._suppressed(output, width)
        rows = rows[(rows[:, 4] > self._score_threshold) & np.isin(rows[:, 5], self._classes)][:MAX_DETECTIONS]
        joints = rows[:, 6:].reshape(len(rows), self.joints, self._values)
        joints = np.concatenate([fit.to_image(joints[..., :2]), joints[..., 2:]], axis=-1)
        size = image.shape[1], image.shape[0]
        return ImageDetections.within(size, fit.boxes_to_image(rows[:, :4]), rows[:, 4], joints)

    def _suppressed(self, head: F32, width: int) -> F32:
        """Return the final detections (N, 6 + width) of the head's output, with suppression within each class."""
        of_kinds = head[4 : len(head) - width]
        found = np.flatnonzero(of_kinds.max(axis=0) > self._score_threshold)
        kinds = of_kinds[:, found].argmax(axis=0)
        counted = np.isin(kinds, self._classes)
        found, kinds = found[counted], kinds[counted]
        middles, half = head[:2, found].T, head[2:4, found].T / 2
        xyxy = np.concatenate([middles - half, middles + half], axis=1)
        shifted = xyxy + kinds[:, None].astype(np.float32) * (10 * self.side)  # separates boxes of different classes
        best = suppress(shifted, of_kinds[kinds, found], self._overlap_threshold)
        found, kinds = found[best], kinds[best]
        joints = head[len(head) - width :, found].T
        return np.concatenate(
            [xyxy[best], of_kinds[kinds, found][:, None], kinds[:, None], joints], axis=1, dtype=np.float32
        )


def _literal(value: str) -> Any:
    """Parse a metadata value: a Python literal, or else plain text."""
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value
