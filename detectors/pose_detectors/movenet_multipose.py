"""MoveNet MultiPose as a person detector for up to six people."""

from collections.abc import Sequence
from pathlib import Path

from pose.networks.estimators.whole_image import MoveNetMultiPose
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.structures.types import U8, Boxes


class MoveNetMultiPoseDetector:
    """Person detector for up to six people, which uses the boxes of MoveNet MultiPose, on the CPU."""

    name = "movenet-multipose"

    def __init__(self, *, model: Path, options: StageOptions = DEFAULT_OPTIONS) -> None:
        """Load the network; PoseError if the weights cannot be loaded."""
        self._network = MoveNetMultiPose(model=model, options=options)

    def detect(self, images: Sequence[U8]) -> list[Boxes]:
        """Return person boxes of each (H, W, 3) uint8 RGB image, sorted by descending score."""
        return [boxes for boxes, _ in self._network.find(images)]
