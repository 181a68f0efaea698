"""MoveNet MultiPose: people and joints in one pass over the image, or the joints of one person in each crop."""

from pathlib import Path

from pose.estimators.whole_image import WholeImageEstimator
from pose.networks.multipose import MultiPoseNetwork
from pose.networks.options import USUAL, StageOptions
from pose.weights import locate

GRAPH = "movenet-multipose-graph"


class MoveNetMultiPose(WholeImageEstimator):
    """Estimates COCO-17 joints of up to six people on the CPU, in whole images or in crops."""

    name = "movenet-multipose"

    def __init__(self, *, model: Path, options: StageOptions = USUAL) -> None:
        """
        Args:
            model: Weights in TensorFlow.js' format.
            options: Options of the stage.

        Raises:
            PoseError: If they cannot be loaded.
        """
        super().__init__(MultiPoseNetwork(locate(GRAPH), model, options))
