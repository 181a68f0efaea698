"""Lifters of the laboratory in commands that load a lifter."""

from importlib.util import find_spec
from pathlib import Path

from pose.lifting.names import SHIPPED


def allow_research_lifters(lifter: str) -> None:
    """Make mechanisms and forms of the laboratory available if `lifter` is a checkpoint file and torch is installed."""
    if lifter not in SHIPPED and Path(lifter).suffix != ".onnx" and find_spec("torch") is not None:
        import pose.training.research  # noqa: F401
