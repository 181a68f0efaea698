"""Estimator that runs any top-down model of MMPose with the `mmpose` package.

The model's config determines crops, test-time augmentation and decoding.

Full `mmcv` does not compile against current torch, so `mmcv-lite` replaces it. `mmcv-lite` lacks `mmcv.ops`. mmpose and
mmdet import `mmcv.ops` at start, but top-down pose models of convolutions and attention do not use it. It is therefore
replaced. Each name in the replacement is a class that raises an error when used.
"""

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from pose.errors import PoseError
from pose.networks import crops
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
        """Build the model; PoseError without mmpose, or if options or joints do not fit."""
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


PACKAGE = "mmcv.ops"
# Layers that `mmcv.ops` registers in MMEngine and that configs name.
LAYERS = ("DCN", "DCNv2", "SAC", "carafe", "MultiScaleDeformableAttention")


class MissingOperatorError(PoseError):
    """Error for a model that needs a compiled operator of mmcv."""


class _Operators(ModuleType):
    """Replacement of `mmcv.ops` or a submodule, in which every public name is a class that cannot be instantiated."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def refuse(self: object, *arguments: object, **options: object) -> None:
            raise MissingOperatorError(f"needs mmcv's compiled operator {name}, which mmcv-lite does not have")

        operator = type(name, (), {"__init__": refuse})
        setattr(self, name, operator)
        return operator


class _OperatorFinder(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        if fullname == PACKAGE or fullname.startswith(f"{PACKAGE}."):
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Operators(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing, because the names of the module are created on access."""


def stand_in_for_operators() -> None:
    """Make `mmcv.ops` importable. Do nothing if mmcv was compiled with its operators."""
    if importlib.util.find_spec("mmcv._ext") is None and not any(isinstance(f, _OperatorFinder) for f in sys.meta_path):
        sys.meta_path.insert(0, _OperatorFinder())
        from mmengine.registry import MODELS

        operators = importlib.import_module(PACKAGE)
        for layer in LAYERS:
            MODELS.register_module(layer, module=getattr(operators, layer))


def import_apis() -> Any:
    """Import `mmpose.apis`."""
    try:
        import mmcv  # noqa: F401
    except ImportError as error:
        raise _not_installed(error) from error
    stand_in_for_operators()
    try:
        import mmpose.apis
    except ImportError as error:
        raise _not_installed(error) from error
    return mmpose.apis


def _not_installed(error: ImportError) -> PoseError:
    return PoseError(f"the mmpose estimator needs MMPose ({error}): run `pose-setup mmpose`")
