"""YOLO person detector with networks of any size of YOLOv8, YOLO11 and YOLO26.

ONNX Runtime runs `.onnx` files, and the `ultralytics` package runs `.pt` files. The official weights and `ultralytics`
are AGPL-3.0. Nothing else in the project needs them.
"""

from collections.abc import Sequence
from pathlib import Path

from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.networks.yolo import OVERLAP_THRESHOLD, YoloTask, load_yolo
from pose.structures.types import U8, Boxes


class YoloDetector:
    """Person detector with a YOLO detection or pose network."""

    def __init__(
        self,
        *,
        model: Path,
        task: YoloTask = "detect",
        options: StageOptions = DEFAULT_OPTIONS,
        overlap_threshold: float = OVERLAP_THRESHOLD,
        classes: tuple[int, ...] = (0,),
    ) -> None:
        """Load the network; PoseError if the network cannot be loaded with these options."""
        self.name = "yolo" if task == "detect" else "yolo-pose"
        self._network = load_yolo(model, task, options, overlap_threshold, classes)
        self.device = self._network.device

    def detect(self, images: Sequence[U8]) -> list[Boxes]:
        """Return person boxes of each (H, W, 3) uint8 RGB image, in batches as large as the model file allows."""
        return [Boxes(found.xyxy, found.scores) for found in self._network(images)]
