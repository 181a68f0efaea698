"""Estimator that runs any top-down model of MMPose with the `mmpose` package.

The model's config determines crops, test-time augmentation and decoding.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from pose.errors import PoseError
from pose.networks import crops
from pose.networks.estimators.mmpose_import import MissingOperatorError, import_apis
from pose.networks.estimators.rtmpose import CONFIDENCE_JOINTS, JOINTS_BOX_SCALE, MIN_JOINT_SCORE
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.structures.skeletons import SKELETONS, Skeleton
from pose.structures.types import F32, U8, Boxes, Keypoints2D, Regions
from pose.utils.device import resolve_device, torch_threads

if TYPE_CHECKING:
    from mmpose.models import TopdownPoseEstimator


class _Meta(TypedDict):
    """Fields of an MMPose model's dataset metadata that this module reads."""

    keypoint_id2name: Mapping[int, str]
    num_keypoints: int


class MMPose:
    """Estimator of joints in each region. The data set of the model determines the skeleton."""

    name = "mmpose"

    def __init__(self, *, model: Path, options: StageOptions = DEFAULT_OPTIONS) -> None:
        """Build the model.

        Raises:
            PoseError: If mmpose is not installed, the model cannot be built with these options, or its joints match no
                known skeleton.
        """
        if options.precision == "float16":
            raise PoseError("precision: mmpose models run in float32 here; use precision auto or float32")
        self.device = resolve_device(options.device)
        self._threads = options.threads
        self._network = _build(model, self.device)
        self.skeleton = _skeleton(self._network.dataset_meta, model)

    def regions(self, boxes: Boxes) -> Regions:
        """Return the boxes as regions, without padding. The model's config adds the padding."""
        return _box_regions(boxes.xyxy)

    def estimate(self, images: Sequence[U8], regions: Sequence[Regions]) -> list[Keypoints2D]:
        """Estimate joints in every region of every image, one batch per image.

        The confidence of a person is the mean of the eight highest joint scores. Joints outside the image get score 0.
        """
        return [self._estimate(image, rows) for image, rows in zip(images, regions, strict=True)]

    def _estimate(self, image: U8, regions: Regions) -> Keypoints2D:
        joints = len(self.skeleton)
        xy, scores = np.zeros((len(regions), joints, 2), np.float32), np.zeros((len(regions), joints), np.float32)
        if len(regions):
            boxes = crops.region_boxes(regions)
            with torch_threads(self._threads):
                found = import_apis().inference_topdown(self._network, np.ascontiguousarray(image[..., ::-1]), boxes)
            for row, sample in enumerate(found):
                xy[row] = sample.pred_instances.keypoints[0]
                scores[row] = np.clip(sample.pred_instances.keypoint_scores[0], 0, 1)
        presence = np.sort(scores, axis=1)[:, -CONFIDENCE_JOINTS:].mean(axis=1)
        scores = np.where(crops.outside(xy, image), np.float32(0), scores)
        around = _box_regions(crops.bounds(xy, scores > MIN_JOINT_SCORE))
        next_regions = Regions(around.centers, around.sizes * np.float32(JOINTS_BOX_SCALE), around.angles)
        return Keypoints2D(xy, scores, presence, next_regions)


def _box_regions(xyxy: F32) -> Regions:
    low, high = xyxy[:, :2], xyxy[:, 2:]
    return Regions((low + high) * np.float32(0.5), high - low, np.zeros(len(xyxy), np.float32))


def _build(checkpoint: Path, device: str) -> "TopdownPoseEstimator":
    """Build MMPose's model and load the parameters of a checkpoint, without running code from the file."""
    from pose.networks.estimators.rtmpose_net import read_parameters

    apis = import_apis()
    config = checkpoint.with_suffix(".py")
    if not config.is_file():
        raise PoseError(f"{config}: not found; put the model's config there, beside its checkpoint")
    try:
        network = apis.init_model(str(config), None, device="cpu", cfg_options={"model.backbone.init_cfg": None})
    except MissingOperatorError as error:
        raise PoseError(f"{config}: {str(error).rpartition(': ')[2]}") from error
    try:
        network.load_state_dict(read_parameters(checkpoint))
    except RuntimeError as error:
        raise PoseError(f"{checkpoint}: does not contain the parameters of the model in {config.name}") from error
    return network.to(device)


def _skeleton(meta: _Meta, checkpoint: Path) -> Skeleton:
    """Return the skeleton whose joint names equal those of the model's data set."""
    names = tuple(meta["keypoint_id2name"][joint] for joint in range(meta["num_keypoints"]))
    for skeleton in SKELETONS.values():
        if skeleton.names == names:
            return skeleton
    raise PoseError(f"{checkpoint}: its {len(names)} joints match no known skeleton; known: {', '.join(SKELETONS)}")
