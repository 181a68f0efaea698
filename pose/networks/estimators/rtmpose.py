"""RTMPose, a top-down estimator with one classifier along x and one along y for each joint in a person's crop.

Source: Jiang et al., RTMPose: Real-Time Multi-Person Pose Estimation based on MMPose, 2023, arXiv:2303.07399. Boxes,
crops, normalisation and decoding are those of open-mmlab/mmpose 1.3.2 (`GetBBoxCenterScale`, `TopdownAffine`,
`PoseDataPreprocessor`, `SimCCLabel`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pose.errors import PoseError
from pose.networks import crops
from pose.networks.input import NetworkInput, Samples
from pose.networks.onnx import OnnxNetwork
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.structures.skeletons import COCO17, HALPE26, Skeleton
from pose.structures.types import F32, U8, Boxes, Keypoints2D, Regions
from pose.utils.device import require_torch, resolve_device, torch_threads

MEAN_RGB = (123.675, 116.28, 103.53)
STD_RGB = (58.395, 57.12, 57.375)
PADDING = 1.25
SKELETONS = {len(skeleton): skeleton for skeleton in (COCO17, HALPE26)}
# The region for the next frame contains the joints above MIN_JOINT_SCORE; their box is scaled by JOINTS_BOX_SCALE.
MIN_JOINT_SCORE = 0.3
JOINTS_BOX_SCALE = 1.2
CONFIDENCE_JOINTS = 8  # number of highest joint scores whose mean is the confidence


class SimCCNetwork(Protocol):
    """Interface of networks that map crops to SimCC scores: for each joint, one per half pixel along x and along y."""

    crop: tuple[int, int]  # (width, height) of a crop in px
    joints: int
    device: str  # device of the network
    input: NetworkInput  # converter of images to network inputs

    def __call__(self, samples: Samples) -> tuple[F32, F32]:
        """Return the scores (N, J, 2 W) along x and (N, J, 2 H) along y of N normalised crops (N, 3, H, W)."""
        ...


class RTMPose:
    """Estimator of COCO-17 or Halpe-26 joints in each region. The model file determines the skeleton."""

    name = "rtmpose"

    def __init__(self, *, model: Path, options: StageOptions = DEFAULT_OPTIONS) -> None:
        """Load the network; PoseError if options do not fit, or it has neither 17 nor 26 joints."""
        if model.suffix in (".pth", ".pt"):
            self._network: SimCCNetwork = _TorchNetwork(model, options)
        else:
            self._network = _OnnxRTMPose(model, options)
        if self._network.joints not in SKELETONS:
            known = ", ".join(f"{joints} ({skeleton.name})" for joints, skeleton in SKELETONS.items())
            raise PoseError(f"{model}: outputs {self._network.joints} joints; rtmpose expects {known}")
        self.device = self._network.device
        self.skeleton: Skeleton = SKELETONS[self._network.joints]

    def regions(self, boxes: Boxes) -> Regions:
        """Return an upright region around each box, 1.25 times as large, extended to the aspect ratio of the crop."""
        return box_regions(boxes.xyxy, self._network.crop)

    def estimate(self, images: Sequence[U8], regions: Sequence[Regions]) -> list[Keypoints2D]:
        """Estimate joints in every region of every image, all in one batch.

        The score of a joint is the smaller of its highest scores along x and y, clipped to [0, 1]. Joints outside the
        image get score 0. The confidence of a person is the mean of the eight highest joint scores.
        """
        size = self._network.crop
        matrices = [crops.crop_matrices(rows, size) for rows in regions]
        if any(map(len, regions)):
            points, scores = decode(*self._network(self._network.input.cropped(images, matrices, size)))
        else:
            points, scores = _no_keypoints(len(self.skeleton))
        ends = np.cumsum([len(rows) for rows in regions])
        return [
            self._keypoints(image, rows, points[end - len(rows) : end], scores[end - len(rows) : end])
            for image, rows, end in zip(images, matrices, ends, strict=True)
        ]

    def _keypoints(self, image: U8, matrices: F32, points: F32, scores: F32) -> Keypoints2D:
        xy = crops.apply_affine(matrices, points)
        presence = np.sort(scores, axis=1)[:, -CONFIDENCE_JOINTS:].mean(axis=1)
        scores = np.where(crops.outside(xy, image), np.float32(0), scores)
        boxes = _grow(crops.bounds(xy, scores > MIN_JOINT_SCORE), JOINTS_BOX_SCALE)
        return Keypoints2D(xy, scores, presence, box_regions(boxes, self._network.crop))


def box_regions(xyxy: F32, crop: tuple[int, int]) -> Regions:
    """Return upright regions of 1.25 times the size of boxes (P, 4) px, extended to the aspect ratio of the crop."""
    low, high = xyxy[:, :2], xyxy[:, 2:]
    padded = (high - low) * np.float32(PADDING)
    width = np.maximum(padded[:, 0], padded[:, 1] * np.float32(crop[0] / crop[1]))
    sizes = np.stack([width, width * np.float32(crop[1] / crop[0])], axis=1)
    return Regions((low + high) * np.float32(0.5), sizes, np.zeros(len(xyxy), np.float32))


def decode(simcc_x: F32, simcc_y: F32) -> tuple[F32, F32]:
    """Convert SimCC scores (N, J, 2 W) and (N, J, 2 H) to points (N, J, 2) in crop px and scores (N, J) in [0, 1]."""
    points = np.stack([simcc_x.argmax(axis=2), simcc_y.argmax(axis=2)], axis=2) * np.float32(0.5)
    scores = np.minimum(simcc_x.max(axis=2), simcc_y.max(axis=2))
    return points.astype(np.float32), scores.clip(0, 1)


def _no_keypoints(joints: int) -> tuple[F32, F32]:
    return np.zeros((0, joints, 2), np.float32), np.zeros((0, joints), np.float32)


def _grow(xyxy: F32, factor: float) -> F32:
    """Return boxes (P, 4) scaled by `factor` around their centres."""
    low, high = xyxy[:, :2], xyxy[:, 2:]
    more = (high - low) * np.float32((factor - 1) / 2)
    return np.concatenate([low - more, high + more], axis=1)


class _OnnxRTMPose:
    """Network exported by MMDeploy, with input (B, 3, H, W) and outputs `simcc_x` and `simcc_y`."""

    def __init__(self, path: Path, options: StageOptions) -> None:
        self._network = OnnxNetwork(path, options)
        height, width = self._network.shape[-2:]
        if len(self._network.shape) != 4 or height is None or width is None:
            raise PoseError(f"{path}: not an export of RTMPose (its input is not an image of fixed size)")
        self.crop = (width, height)
        outputs = self._network.run(np.zeros((1, 3, height, width), self._network.dtype))
        ends = [output.shape[2:] for output in outputs]
        if ends != [(2 * width,), (2 * height,)]:
            raise PoseError(f"{path}: not an export of RTMPose (its outputs are not SimCC scores along x and y)")
        self.joints = int(outputs[0].shape[1])
        self.device: str = self._network.device
        self.input = self._network.input(mean=MEAN_RGB, std=STD_RGB)

    def __call__(self, samples: Samples) -> tuple[F32, F32]:
        simcc_x, simcc_y = self._network.run(samples)
        return simcc_x.astype(np.float32, copy=False), simcc_y.astype(np.float32, copy=False)


class _TorchNetwork:
    """Network of an MMPose checkpoint. On CUDA the backbone runs in half precision by default."""

    def __init__(self, path: Path, options: StageOptions) -> None:
        require_torch(path.name)
        import torch

        self.device = resolve_device(options.device)
        half = options.precision == "float16" or (options.precision == "auto" and self.device == "cuda")
        self._threads = options.threads
        self._network = _load(path)
        self.crop, self.joints = self._network.crop, self._network.joints
        self._network.backbone.to(dtype=torch.float16 if half else torch.float32)
        self._network.to(self.device, memory_format=torch.channels_last)
        self.input = NetworkInput(self.device, np.float16 if half else np.float32, mean=MEAN_RGB, std=STD_RGB)

    def __call__(self, samples: Samples) -> tuple[F32, F32]:
        import torch

        with torch.inference_mode(), torch_threads(self._threads):
            batch = torch.from_numpy(samples) if isinstance(samples, np.ndarray) else samples
            simcc_x, simcc_y = self._network(batch.contiguous(memory_format=torch.channels_last))
        return simcc_x.cpu().numpy(), simcc_y.cpu().numpy()


def _load(path: Path) -> Any:
    """Load the network. The return type is Any because torch's annotations lack `memory_format`."""
    from pose.networks.estimators.rtmpose_net import load_checkpoint

    return load_checkpoint(path)
