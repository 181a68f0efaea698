"""Loading of YOLO networks (v8, 11, 26; detect and pose) in `.onnx` and `.pt` files."""

from pathlib import Path

from pose.errors import UsageError
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.networks.whole_image import WholeImageNetwork
from pose.networks.yolo_defaults import OVERLAP_THRESHOLD, YoloTask
from pose.networks.yolo_onnx import YoloOnnx


def load_yolo(
    model: Path,
    task: YoloTask,
    options: StageOptions = DEFAULT_OPTIONS,
    overlap_threshold: float = OVERLAP_THRESHOLD,
    classes: tuple[int, ...] = (0,),
) -> WholeImageNetwork:
    """Load a YOLO network: `.onnx` with ONNX Runtime, `.pt` with the `ultralytics` package.

    Raises:
        PoseError: If the network cannot be loaded with these options.
        UsageError: If the file has neither suffix.
    """
    if model.suffix == ".onnx":
        return YoloOnnx(model, task, options, overlap_threshold, classes)
    if model.suffix == ".pt":
        from pose.networks.yolo_ultralytics import YoloUltralytics

        return YoloUltralytics(model, task, options, overlap_threshold, classes)
    raise UsageError(f"{model}: expected a YOLO model as an .onnx or .pt file")
