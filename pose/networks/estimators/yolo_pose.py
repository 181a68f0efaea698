"""YOLO pose networks: all people and their joints in one pass over the image, or the joints of one person per crop.

The official weights are AGPL-3.0. Source: Maji et al., YOLO-Pose: Enhancing YOLO for Multi Person Pose Estimation Using
Object Keypoint Similarity Loss, 2022, arXiv:2204.06806. The networks are those of Ultralytics.
"""

from pathlib import Path

from pose.errors import PoseError
from pose.networks.estimators.whole_image import WholeImageEstimator
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.networks.yolo import load_yolo
from pose.structures.skeletons import COCO17


class YoloPose(WholeImageEstimator):
    """Estimator of COCO-17 joints with YOLO, in whole images or in crops."""

    name = "yolo-pose"

    def __init__(self, *, model: Path, options: StageOptions = DEFAULT_OPTIONS) -> None:
        """Load the network.

        Raises:
            PoseError: If the network cannot be loaded with these options, or does not have 17 joints.
        """
        network = load_yolo(model, "pose", options)
        if network.joints != len(COCO17):
            raise PoseError(f"{model}: outputs {network.joints} joints; yolo-pose expects the 17 of COCO")
        super().__init__(network)
