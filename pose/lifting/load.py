"""Loading of a lifter by name or file, with ONNX Runtime or torch."""

from pathlib import Path

from pose.lifting.onnx_lifter import OnnxLifter
from pose.lifting.predict import Lifter
from pose.utils.device import require_torch


def load_lifter(name_or_path: str | Path, device: str = "cpu") -> Lifter:
    """Load a shipped lifter ("offline", "stream" or "sliding") or a checkpoint file.

    On the CPU, ONNX Runtime is used if the .onnx file beside the checkpoint was exported from exactly this checkpoint;
    otherwise torch. An unknown name is a UsageError; a file that cannot be read, or missing torch, a PoseError.
    """
    if device == "cpu" and (lifter := OnnxLifter.beside(name_or_path)) is not None:
        return lifter
    require_torch(f"lifter {name_or_path}: a checkpoint without an .onnx file of its own beside it")
    from pose.lifting.torch_lifter import TorchLifter

    return TorchLifter.load(name_or_path, device)
