"""`pose-bench estimators`: measure every 2D estimator and one-pass network on images of 1, 4 and 16 people."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pose.builders import ESTIMATORS, ONE_PASS
from pose_apps.bench.networks import NetworkBench, NetworkTable

if TYPE_CHECKING:
    from pose.stages import Estimator, OnePass
    from pose.types import U8, Boxes


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorBench(NetworkBench):
    """The subcommand `pose-bench estimators`."""

    purpose = "Time, frames/s and memory of each 2D estimator for 1, 4 and 16 people."

    def run(self) -> None:
        """Measure and print the tables."""
        self.report([NetworkTable(ESTIMATORS, estimation), NetworkTable(ONE_PASS, one_pass, ", one pass")])


def estimation(estimator: "Estimator", image: "U8", boxes: "Boxes") -> Callable[[], int]:
    """Return a function that estimates the joints in all boxes, and returns the number of people."""
    regions = estimator.regions(boxes)
    return lambda: len(estimator.estimate([image], [regions])[0])


def one_pass(network: "OnePass", image: "U8", boxes: "Boxes") -> Callable[[], int]:
    """Return a function that runs a one-pass network once, and returns the number of people found."""
    return lambda: len(network.find([image])[0][0])
