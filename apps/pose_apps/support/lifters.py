"""Pipelines and lifters of commands."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pose.utils.progress import hidden_progress
from pose.utils.resources import return_large_blocks

if TYPE_CHECKING:
    from pose.config import PipelineConfig
    from pose.pipeline import Pipeline
    from pose.structures.camera import Camera


def allow_research_lifters(lifter: str) -> None:
    """Make mechanisms and forms of the laboratory available if `lifter` is a checkpoint file and torch is installed.

    Other lifters, such as `auto`, need no torch, whose import takes seconds and 600 MB.
    """
    if Path(lifter).is_file() and Path(lifter).suffix != ".onnx" and find_spec("torch") is not None:
        import pose.training.research  # noqa: F401


def make_pipeline(
    config: "PipelineConfig",
    cache: str,
    intrinsics: "str | Camera | None" = None,
    *,
    quiet: bool = False,
    loaded: Callable[[], None] = lambda: None,
) -> "Pipeline":
    """Load the networks of a command, those of cached results when they are needed; then call `loaded`."""
    from pose.pipeline import Pipeline
    from pose_apps.support.intrinsics import read_intrinsics

    matrix = read_intrinsics(intrinsics) if isinstance(intrinsics, str) else intrinsics
    allow_research_lifters(config.lifter)
    return_large_blocks()
    with hidden_progress(quiet):
        pipeline = Pipeline(config, intrinsics=matrix, lazy=cache != "off")
    loaded()
    return pipeline
