"""MoveNet MultiPose as a detector: the boxes of up to six people."""

from collections.abc import Sequence
from pathlib import Path

from pose.estimators.movenet_multipose import MoveNetMultiPose
from pose.networks.options import USUAL, StageOptions
from pose.types import U8, Boxes


class MoveNetMultiPoseDetector:
    """Detects up to six people, on the CPU."""

    name = "movenet-multipose"

    def __init__(self, *, model: Path, options: StageOptions = USUAL) -> None:
        """
        Args:
            model: Weights in TensorFlow.js' format.
            options: Options of the stage.

        Raises:
            PoseError: If they cannot be loaded.
        """
        self._network = MoveNetMultiPose(model=model, options=options)

    def detect(self, images: Sequence[U8]) -> list[Boxes]:
        """Return person boxes of each (H, W, 3) uint8 RGB image, sorted by descending score."""
        return [boxes for boxes, _ in self._network.find(images)]
