"""`pose-bench estimators`: measure every 2D estimator and one-pass network on images of 1, 4 and 16 people."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pose.registry import ESTIMATORS, ONE_PASS
from pose_apps.bench.networks import NetworkBench, NetworkTable

if TYPE_CHECKING:
    from pose.structures.stages import Estimator, OnePass
    from pose.structures.types import U8, Boxes


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorBench(NetworkBench):
    """The subcommand `pose-bench estimators`, which measures the 2D pose estimators."""

    purpose = "Time, frames/s and memory of each 2D estimator for 1, 4 and 16 people."

    def run(self) -> None:
        """Measure time and memory of the estimators and of the one-pass networks, and print a table."""
        self.report([NetworkTable(ESTIMATORS, estimation), NetworkTable(ONE_PASS, one_pass, ", one pass")])


def estimation(estimator: "Estimator", image: "U8", boxes: "Boxes") -> Callable[[], int]:
    """Return a function to time, which estimates the joints of all people in an image and returns their number."""
    regions = estimator.regions(boxes)
    return lambda: len(estimator.estimate([image], [regions])[0])


def one_pass(network: "OnePass", image: "U8", boxes: "Boxes") -> Callable[[], int]:
    """Return a function to time, which runs a network on an image and returns the number of people found."""
    return lambda: len(network.find([image])[0][0])
