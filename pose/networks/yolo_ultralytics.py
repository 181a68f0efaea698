"""YOLO networks in `.pt` files, run by the `ultralytics` package (AGPL-3.0, see `pose-setup`)."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pose.errors import PoseError
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.networks.whole_image import ImageDetections
from pose.networks.yolo_defaults import DEFAULT_SIDE, MAX_DETECTIONS, OVERLAP_THRESHOLD, SCORE_THRESHOLD, YoloTask
from pose.structures.types import U8
from pose.utils.device import resolve_device, torch_threads
from pose.utils.shown import in_brief

if TYPE_CHECKING:
    from ultralytics.engine.results import Results


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
