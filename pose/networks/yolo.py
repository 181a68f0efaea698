"""YOLO networks (v8, 11, 26; detect and pose) by the kind of their file."""

from pathlib import Path

from pose.errors import UsageError
from pose.networks.options import USUAL, StageOptions
from pose.networks.yolo_findings import OVERLAP_THRESHOLD, Task, YoloNetwork
from pose.networks.yolo_onnx import YoloOnnx


def load_yolo(
    model: Path,
    task: Task,
    options: StageOptions = USUAL,
    overlap_threshold: float = OVERLAP_THRESHOLD,
    classes: tuple[int, ...] = (0,),
) -> YoloNetwork:
    """The network in `model`: `.onnx` runs on ONNX Runtime, `.pt` through the `ultralytics` package.

    overlap_threshold: IoU above which the weaker of two boxes is dropped. classes: the ones that count, by their index
    in the file.

    Raises PoseError when it cannot be loaded as asked, UsageError for another kind of file.
    """
    if model.suffix == ".onnx":
        return YoloOnnx(model, task, options, overlap_threshold, classes)
    if model.suffix == ".pt":
        from pose.networks.yolo_ultralytics import YoloUltralytics

        return YoloUltralytics(model, task, options, overlap_threshold, classes)
    raise UsageError(f"{model}: expected a YOLO model as an .onnx or .pt file")
