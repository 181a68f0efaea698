"""Lifters of the laboratory in commands that load a lifter."""

from importlib.util import find_spec
from pathlib import Path


def allow_research_lifters(lifter: str) -> None:
    """Make mechanisms and forms of the laboratory available if `lifter` is a checkpoint file and torch is installed.

    Other lifters, such as `auto`, need no torch, whose import takes seconds and 600 MB.
    """
    if Path(lifter).is_file() and Path(lifter).suffix != ".onnx" and find_spec("torch") is not None:
        import pose.training.research  # noqa: F401
