"""Detections of networks that process whole images, independent of model family and runtime."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from pose.structures.types import F32, U8


@dataclass(frozen=True, slots=True)
class ImageDetections:
    """Detections in one image, sorted by descending score and clipped to the image."""

    xyxy: F32  # (P, 4) px, boxes of people, clipped to the image
    scores: F32  # (P,) scores of the boxes
    keypoints: F32  # (P, J, 2) px, joints, clipped to the image; J is 0 for a network without a pose head
    keypoint_scores: F32  # (P, J) scores of the joints

    def __len__(self) -> int:
        return len(self.xyxy)

    @classmethod
    def within(cls, size: tuple[int, int], xyxy: F32, scores: F32, joints: F32) -> Self:
        """Clip detections to an image. Joints outside the image get score 0."""
        limit = np.array(size, np.float32)
        points = joints[..., :2].clip(0, limit)
        seen = ((points > 0) & (points < limit)).all(axis=-1)
        joint_scores = joints[..., 2].clip(0, 1) if joints.shape[-1] == 3 else np.ones(seen.shape, np.float32)
        boxes = xyxy.reshape(-1, 2, 2).clip(0, limit).reshape(-1, 4)
        return cls(boxes, scores, points, np.where(seen, joint_scores, np.float32(0)))


class WholeImageNetwork(Protocol):
    """Interface of loaded networks that find people, and their joints if they have a pose head."""

    joints: int  # number of joints; 0 without a pose head
    side: int  # longer side of the input in px
    device: str  # device of the network

    def __call__(self, images: Sequence[U8]) -> list[ImageDetections]:
        """Find the people in each (H, W, 3) uint8 RGB image."""
        ...
