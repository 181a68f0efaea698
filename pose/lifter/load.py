"""A lifter by its name or file, by whichever program can compute it."""

from pathlib import Path

from pose.lifter.onnx_lifter import OnnxLifter
from pose.lifter.predict import Lifter
from pose.system.device import require_torch


def load_lifter(name_or_path: str | Path, device: str = "cpu") -> Lifter:
    """The shipped lifter `offline` or `stream`, or a checkpoint file.

    On the CPU ONNX Runtime computes it where the .onnx file beside the checkpoint was exported from that very
    checkpoint; else torch does. Raises PoseError or UsageError.
    """
    if device == "cpu" and (lifter := OnnxLifter.beside(name_or_path)) is not None:
        return lifter
    require_torch(f"lifter {name_or_path}: a checkpoint without an .onnx file of its own beside it")
    from pose.lifter.torch_lifter import TorchLifter

    return TorchLifter.load(name_or_path, device)
