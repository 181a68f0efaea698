"""`pose-bench detectors`: every person detector on one picture of 1, 4 and 16 people."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pose.builders import DETECTORS
from pose_apps.bench.networks import Table, add_network_options, report

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser, Namespace

    from pose.stages import Detector
    from pose.types import U8, Boxes

PURPOSE = "Every person detector: time, frames a second and memory for 1, 4 and 16 people."


def add_options(parser: "ArgumentParser") -> None:
    add_network_options(parser)


def run(options: "Namespace") -> None:
    """Measure, print a table, write JSON."""
    report([Table(DETECTORS, detection)], options)


def detection(detector: "Detector", image: "U8", boxes: "Boxes") -> Callable[[], int]:
    """One look at the picture."""
    return lambda: len(detector.detect([image])[0])
