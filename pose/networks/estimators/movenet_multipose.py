"""MoveNet MultiPose: all people and their joints in one pass over the image, or the joints of one person per crop."""

from pathlib import Path

from pose.networks.estimators.whole_image import WholeImageEstimator
from pose.networks.multipose import MultiPoseNetwork
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.networks.weights import locate

GRAPH = "movenet-multipose-graph"


class MoveNetMultiPose(WholeImageEstimator):
    """Estimator of COCO-17 joints of up to six people, in whole images or in crops, on the CPU."""

    name = "movenet-multipose"

    def __init__(self, *, model: Path, options: StageOptions = DEFAULT_OPTIONS) -> None:
        """Load the network; PoseError if the weights cannot be loaded."""
        super().__init__(MultiPoseNetwork(locate(GRAPH), model, options))
