"""MediaPipe's face landmark network on LiteRT: 468 points in a crop, with the processing of its published graph.

Source: Kartynnik et al., Real-time Facial Surface Geometry from Monocular Video on Mobile GPUs, 2019, arXiv:1907.06724;
constants of the graphs `face_landmark_cpu` and `face_landmark_landmarks_to_roi` of google-ai-edge/mediapipe 0.10.21.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from pose.networks import crops
from pose.networks.litert import LiteRTModel, sigmoid
from pose.networks.weights import locate
from pose.structures.face_points import LEFT_EYE, POINTS, RIGHT_EYE
from pose.structures.types import F32, U8, Regions

WEIGHT = "face-landmark"
SIDE = 192
_TRACK_SCALE = 1.5


class FaceOutputs(NamedTuple):
    """Network outputs for R regions."""

    points: F32  # (R, 468, 3) px
    presence: F32  # (R,) probability that the region contains a face


class FaceNetwork:
    """Face landmark network, which predicts 468 points in each region of an image."""

    def __init__(self, *, model: Path | None = None, threads: int = 1) -> None:
        """Load the network; PoseError if the weights are not available or not a valid network."""
        self._network = LiteRTModel(model or locate(WEIGHT), threads)

    def estimate(self, image: U8, regions: Regions) -> FaceOutputs:
        """Estimate the face in each region of an (H, W, 3) uint8 RGB image."""
        matrices = crops.crop_matrices(regions, (SIDE, SIDE))
        raw = np.empty((len(regions), POINTS, 3), np.float32)
        logits = np.empty(len(regions), np.float32)
        for row, matrix in enumerate(matrices):
            crop = crops.crop(image, matrix, (SIDE, SIDE))
            np.multiply(crop, np.float32(1 / 255), out=self._network.input()[0])
            points, present = self._network.run()
            raw[row], logits[row] = points.reshape(POINTS, 3), present.reshape(-1)[0]
            del points, present
        depth = raw[..., 2:] * (regions.sizes[:, :1] / SIDE)[:, None]
        points = np.concatenate([crops.apply_affine(matrices, raw[..., :2]), depth], axis=2)
        return FaceOutputs(points.astype(np.float32), sigmoid(logits))


def tracked_regions(points: F32) -> Regions:
    """Return search regions for the next frame: squares around the points (R, 468, 3) px of R faces.

    They are rotated so that the line between the eyes is parallel to their upper side.
    """
    eyes = points[:, LEFT_EYE[0], :2] - points[:, RIGHT_EYE[0], :2]
    angles = np.arctan2(eyes[:, 1], eyes[:, 0])
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    x = cos * points[..., 0] + sin * points[..., 1]
    y = -sin * points[..., 0] + cos * points[..., 1]
    low, high = np.stack([x.min(1), y.min(1)], 1), np.stack([x.max(1), y.max(1)], 1)
    middle = (low + high) / 2
    cos, sin = cos[:, 0], sin[:, 0]
    centers = np.stack([cos * middle[:, 0] - sin * middle[:, 1], sin * middle[:, 0] + cos * middle[:, 1]], axis=1)
    sides = _TRACK_SCALE * (high - low).max(axis=1)
    return Regions(
        centers.astype(np.float32), np.repeat(sides[:, None], 2, axis=1).astype(np.float32), angles.astype(np.float32)
    )
