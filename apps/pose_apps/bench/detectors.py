"""`pose-bench detectors`: measure every person detector on an image of 1, 4 and 16 people."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pose.registry import DETECTORS
from pose_apps.bench.networks import NetworkBench, NetworkTable

if TYPE_CHECKING:
    from pose.structures.stages import Detector
    from pose.structures.types import U8, Boxes


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorBench(NetworkBench):
    """The subcommand `pose-bench detectors`, which measures the person detectors."""

    purpose = "Time, frames/s and memory of each person detector for 1, 4 and 16 people."

    def run(self) -> None:
        """Measure time and memory of the detectors, and print a table."""
        self.report([NetworkTable(DETECTORS, detection)])


def detection(detector: "Detector", image: "U8", boxes: "Boxes") -> Callable[[], int]:
    """Return a function to time, which runs the detector on an image and returns the number of people found."""
    return lambda: len(detector.detect([image])[0])
