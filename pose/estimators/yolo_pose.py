"""YOLO pose networks: people and joints in one pass over the image, or the joints of one person in each crop.

The official weights are AGPL-3.0. Source: Maji et al., YOLO-Pose: Enhancing YOLO for Multi Person Pose Estimation Using
Object Keypoint Similarity Loss, 2022, arXiv:2204.06806, as Ultralytics builds it.
"""

from pathlib import Path

from pose.errors import PoseError
from pose.estimators.whole_image import WholeImageEstimator
from pose.networks.options import USUAL, StageOptions
from pose.networks.yolo import load_yolo
from pose.skeletons import COCO17


class YoloPose(WholeImageEstimator):
    """Estimates COCO-17 joints with YOLO, in whole images or in crops."""

    name = "yolo-pose"

    def __init__(self, *, model: Path, options: StageOptions = USUAL) -> None:
        """
        Args:
            model: Weight file.
            options: Options of the stage.

        Raises:
            PoseError: If it cannot be loaded with these options, or does not have 17 joints.
        """
        network = load_yolo(model, "pose", options)
        if network.joints != len(COCO17):
            raise PoseError(f"{model}: outputs {network.joints} joints; yolo-pose expects the 17 of COCO")
        super().__init__(network)
