"""YOLO networks (v8, 11, 26; detect and pose): `.onnx` in ONNX Runtime, `.pt` by `ultralytics` (AGPL-3.0).

Boxes and keypoints equal those of the `ultralytics` package, which is not needed. The weights keep the licence of their
authors: the official ones are AGPL-3.0.
"""

import ast
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pose.errors import PoseError, UsageError
from pose.networks.letterbox import LetterboxTransform, fitted_size, round_up, suppress
from pose.networks.onnx import OnnxNetwork
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.networks.whole_image import ImageDetections, WholeImageNetwork
from pose.structures.types import F32, U8
from pose.utils.device import resolve_device, torch_threads
from pose.utils.shown import in_brief

if TYPE_CHECKING:
    from ultralytics.engine.results import Results

YoloTask = Literal["detect", "pose"]

SCORE_THRESHOLD = 0.25
OVERLAP_THRESHOLD = 0.7
MAX_DETECTIONS = 300
DEFAULT_SIDE = 640


def load_yolo(
    model: Path,
    task: YoloTask,
    options: StageOptions = DEFAULT_OPTIONS,
    overlap_threshold: float = OVERLAP_THRESHOLD,
    classes: tuple[int, ...] = (0,),
) -> WholeImageNetwork:
    """Load a YOLO network, `.onnx` or `.pt` (else UsageError); PoseError if options do not fit."""
    if model.suffix == ".onnx":
        return YoloOnnx(model, task, options, overlap_threshold, classes)
    if model.suffix == ".pt":
        return YoloUltralytics(model, task, options, overlap_threshold, classes)
    raise UsageError(f"{model}: expected a YOLO model as an .onnx or .pt file")


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


class YoloUltralytics:
    """YOLO network in a `.pt` file."""

    # Ultralytics unpickles the file, which can run code. Open only files from trusted sources.

    def __init__(
        self,
        model: Path,
        task: YoloTask,
        options: StageOptions = DEFAULT_OPTIONS,
        overlap_threshold: float = OVERLAP_THRESHOLD,
        classes: tuple[int, ...] = (0,),
    ) -> None:
        """Load the network; of two boxes with a larger IoU than `overlap_threshold` the weaker one is removed."""
        # Prevents installations, look-ups and reports over the internet without the user's consent.
        os.environ.setdefault("YOLO_AUTOINSTALL", "false")
        os.environ.setdefault("YOLO_OFFLINE", "true")
        try:
            from ultralytics import YOLO
        except ImportError as error:
            raise PoseError(f"{model.name} needs Ultralytics (AGPL-3.0): pose-setup ultralytics") from error
        if not model.is_file():
            raise PoseError(f"{model}: no such file")
        try:
            self._network = YOLO(model, task=task, verbose=False)
        except Exception as error:  # unpickling can raise any exception
            raise PoseError(f"{model}: not a readable YOLO file ({in_brief(error)})") from error
        if self._network.task != task:
            raise PoseError(f"{model}: a YOLO file for {self._network.task!r}, not for {task!r}")
        self.joints: int = self._network.model.model[-1].kpt_shape[0] if task == "pose" else 0
        self.side = options.size or DEFAULT_SIDE
        self.device = device = resolve_device(options.device)
        self._threads = options.threads
        half = options.precision == "float16" or (options.precision == "auto" and device == "cuda")
        if half and device == "cpu":
            raise PoseError("precision: Ultralytics computes in float32 on the CPU; use float32, or device cuda")
        self._arguments = {
            "conf": options.min_score_or(SCORE_THRESHOLD),
            "iou": overlap_threshold,
            "classes": list(classes),
            "device": device,
            "quantize": 16 if half else 32,
            "imgsz": self.side,
            "max_det": MAX_DETECTIONS,
            "verbose": False,
        }

    def __call__(self, images: Sequence[U8]) -> list[ImageDetections]:
        if not len(images):
            return []
        bgr_images = [np.ascontiguousarray(image[..., ::-1]) for image in images]
        with torch_threads(self._threads):
            found = self._network.predict(bgr_images, **self._arguments)
        return [self._findings(result) for result in found]

    def _findings(self, result: "Results") -> ImageDetections:
        boxes = result.boxes.data.cpu().numpy().astype(np.float32)
        joints = np.zeros((len(boxes), 0, 3), np.float32)
        if result.keypoints is not None:
            joints = result.keypoints.data.cpu().numpy().astype(np.float32)
        height, width = result.orig_shape
        return ImageDetections.within((width, height), boxes[:, :4], boxes[:, 4], joints)
