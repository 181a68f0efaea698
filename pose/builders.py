"""What can be chosen by name: one table a stage, name -> how to build it. Imports happen when something is built.

To add a detector or an estimator, write its file and add one line here (CONTRIBUTING.md shows both).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from pose.stages import Detector, Estimator

if TYPE_CHECKING:
    from pose.config import PipelineConfig

Stage = TypeVar("Stage")


@dataclass(frozen=True, slots=True)
class Choice(Generic[Stage]):
    """One entry of a table. weight: its name in the catalogue. build: makes the stage from that weight's file."""

    weight: str
    build: Callable[["PipelineConfig", Path], Stage]


def _blazepose_detector(config: "PipelineConfig", weight: Path) -> Detector:
    from detectors.blazepose import BlazePoseDetector

    return BlazePoseDetector(model=weight, threads=config.threads, score_threshold=config.detection_score)


def _blazepose_full(config: "PipelineConfig", weight: Path) -> Estimator:
    from pose.estimators.blazepose import BlazePose

    return BlazePose(model=weight, variant="full", threads=config.threads)


def _blazepose_lite(config: "PipelineConfig", weight: Path) -> Estimator:
    from pose.estimators.blazepose import BlazePose

    return BlazePose(model=weight, variant="lite", threads=config.threads)


DETECTORS: dict[str, Choice[Detector]] = {
    "blazepose": Choice("blazepose-detector", _blazepose_detector),
}

ESTIMATORS: dict[str, Choice[Estimator]] = {
    "blazepose": Choice("blazepose-landmark-full", _blazepose_full),
    "blazepose-lite": Choice("blazepose-landmark-lite", _blazepose_lite),
}


def build(table: dict[str, Choice[Stage]], name: str, config: "PipelineConfig") -> Stage:
    """The stage that `table` calls `name`. Raises PoseError when its weight cannot be had."""
    from pose.weights import locate

    choice = table[name]
    return choice.build(config, locate(choice.weight))
