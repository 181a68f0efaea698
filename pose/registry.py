"""Registries of selectable stages: one table per kind of stage maps names to factories.

The module of a stage is imported when the stage is built. To add a detector or an estimator, write its module and add
one line here; CONTRIBUTING.md shows both.
"""

from __future__ import annotations  # types of stages without importing their dependencies

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from pose.errors import PoseError, UsageError
from pose.utils.shown import in_brief

if TYPE_CHECKING:
    from pose.networks.options import StageOptions
    from pose.structures.stages import Detector, Estimator, OnePass

Stage = TypeVar("Stage")

AUTO_DETECTOR = AUTO_ESTIMATOR = "auto"
PREFERRED_DETECTOR, FALLBACK_DETECTOR = "rtmdet", "blazepose"
DEFAULT_ESTIMATOR = "blazepose"


@dataclass(frozen=True, slots=True)
class Choice(Generic[Stage]):
    """One entry of a registry: a selectable stage."""

    # Catalogue name of the default weights; None for a stage without a network, or if the user must provide the
    # weights.
    weight: str | None
    # Function that makes the stage from the weight file; a stage without a network ignores the file.
    build: Callable[[Path, StageOptions], Stage]
    # Whether the runtime of the stage supports only the CPU and only the precision of the weight file.
    cpu_only: bool = False
    sized: bool = False  # whether the input size can be chosen
    own_file: bool = False  # whether there are no default weights, so that the user must name a weight file
    # Threshold on an estimator's confidence that a crop shows a person. Each family of networks needs its own
    # threshold, because they compute the confidence differently.
    presence: float = 0.5
    # Skeleton of an estimator with the default weights; None if the weights determine the skeleton.
    skeleton: str | None = None


def _blazepose_detector(weight: Path, options: StageOptions) -> Detector:
    from pose_detectors.blazepose import BlazePoseDetector

    return BlazePoseDetector(model=weight, options=options)


def _mobilenet(weight: Path, options: StageOptions) -> Detector:
    from pose_detectors.mobilenet import MobileNetDetector

    return MobileNetDetector(model=weight, options=options)


def _ssdlite(weight: Path, options: StageOptions) -> Detector:
    from pose_detectors.mobilenet import SSDLiteDetector

    return SSDLiteDetector(model=weight, options=options)


def _rtmdet(weight: Path, options: StageOptions) -> Detector:
    from pose_detectors.rtmdet import RTMDetDetector

    return RTMDetDetector(model=weight, options=options)


def _yolox(weight: Path, options: StageOptions) -> Detector:
    from pose_detectors.yolox import YoloXDetector

    return YoloXDetector(model=weight, options=options)


def _yolo(weight: Path, options: StageOptions) -> Detector:
    from pose_detectors.yolo import YoloDetector

    return YoloDetector(model=weight, options=options)


def _yolo_with_pose_network(weight: Path, options: StageOptions) -> Detector:
    from pose_detectors.yolo import YoloDetector

    return YoloDetector(model=weight, task="pose", options=options)


def _multipose_detector(weight: Path, options: StageOptions) -> Detector:
    from pose_detectors.movenet_multipose import MoveNetMultiPoseDetector

    return MoveNetMultiPoseDetector(model=weight, options=options)


def _full_frame(weight: Path, options: StageOptions) -> Detector:
    from pose_detectors.full_frame import FullFrameDetector

    return FullFrameDetector()


def _blazepose_full(weight: Path, options: StageOptions) -> Estimator:
    from pose.networks.estimators.blazepose import BlazePose

    return BlazePose(model=weight, variant="full", options=options)


def _blazepose_lite(weight: Path, options: StageOptions) -> Estimator:
    from pose.networks.estimators.blazepose import BlazePose

    return BlazePose(model=weight, variant="lite", options=options)


def _blazepose_heavy(weight: Path, options: StageOptions) -> Estimator:
    from pose.networks.estimators.blazepose import BlazePose

    return BlazePose(model=weight, variant="heavy", options=options)


def _movenet(weight: Path, options: StageOptions) -> Estimator:
    from pose.networks.estimators.movenet import MoveNet

    return MoveNet(model=weight, options=options)


def _rtmpose(weight: Path, options: StageOptions) -> Estimator:
    from pose.networks.estimators.rtmpose import RTMPose

    return RTMPose(model=weight, options=options)


def _mmpose(weight: Path, options: StageOptions) -> Estimator:
    from pose.networks.estimators.mmpose import MMPose

    return MMPose(model=weight, options=options)


def _yolo_pose_on_crops(weight: Path, options: StageOptions) -> Estimator:
    from pose.networks.estimators.whole_image import YoloPose

    return YoloPose(model=weight, options=replace(options, score=None, size=None))


def _yolo_pose(weight: Path, options: StageOptions) -> OnePass:
    from pose.networks.estimators.whole_image import YoloPose

    return YoloPose(model=weight, options=options)


def _multipose_on_crops(weight: Path, options: StageOptions) -> Estimator:
    from pose.networks.estimators.whole_image import MoveNetMultiPose

    return MoveNetMultiPose(model=weight, options=replace(options, score=None, size=None))


def _multipose(weight: Path, options: StageOptions) -> OnePass:
    from pose.networks.estimators.whole_image import MoveNetMultiPose

    return MoveNetMultiPose(model=weight, options=options)


_YOLO_POSE, _MULTIPOSE = "yolo26n-pose", "movenet-multipose"  # weights of detectors and estimators

DETECTORS: dict[str, Choice[Detector]] = {
    "blazepose": Choice("blazepose-detector", _blazepose_detector, cpu_only=True),
    "rtmdet": Choice("rtmdet-nano-person-320", _rtmdet, sized=True),
    "yolox": Choice("yolox-nano-coco-416", _yolox, sized=True),
    "mobilenet": Choice("ssd-mobilenet-v1-coco-300-int8", _mobilenet, cpu_only=True),
    "ssdlite": Choice("ssdlite320-mobilenet-v3", _ssdlite),
    "yolo": Choice("yolo26n", _yolo, sized=True),
    "yolo-pose": Choice(_YOLO_POSE, _yolo_with_pose_network, sized=True),
    "movenet-multipose": Choice(_MULTIPOSE, _multipose_detector, cpu_only=True, sized=True),
    "full-frame": Choice(None, _full_frame),
}

ESTIMATORS: dict[str, Choice[Estimator]] = {
    "blazepose": Choice("blazepose-landmark-full", _blazepose_full, cpu_only=True, skeleton="blazepose33"),
    "blazepose-lite": Choice("blazepose-landmark-lite", _blazepose_lite, cpu_only=True, skeleton="blazepose33"),
    "blazepose-heavy": Choice("blazepose-landmark-heavy", _blazepose_heavy, cpu_only=True, skeleton="blazepose33"),
    "movenet": Choice("movenet-lightning-int8", _movenet, cpu_only=True, presence=0.45, skeleton="coco17"),
    "movenet-thunder": Choice("movenet-thunder", _movenet, cpu_only=True, presence=0.45, skeleton="coco17"),
    "rtmpose-t": Choice("rtmpose-t-coco17-256x192", _rtmpose, skeleton="coco17"),
    "rtmpose-s": Choice("rtmpose-s-coco17-256x192", _rtmpose, skeleton="coco17"),
    "rtmpose-m": Choice("rtmpose-m-coco17-256x192", _rtmpose, skeleton="coco17"),
    "rtmpose-l": Choice("rtmpose-l-coco17-256x192", _rtmpose, skeleton="coco17"),
    "rtmpose-x": Choice("rtmpose-x-coco17-384x288", _rtmpose, skeleton="coco17"),
    "rtmpose-t-halpe26": Choice("rtmpose-t-halpe26-256x192", _rtmpose, skeleton="halpe26"),
    "rtmpose-s-halpe26": Choice("rtmpose-s-halpe26-256x192", _rtmpose, skeleton="halpe26"),
    "rtmpose-m-halpe26": Choice("rtmpose-m-halpe26-256x192", _rtmpose, skeleton="halpe26"),
    "rtmpose-l-halpe26": Choice("rtmpose-l-halpe26-256x192", _rtmpose, skeleton="halpe26"),
    "rtmpose-x-halpe26": Choice("rtmpose-x-halpe26-384x288", _rtmpose, skeleton="halpe26"),
    "yolo-pose": Choice(
        _YOLO_POSE, _yolo_pose_on_crops, presence=0.25, skeleton="coco17"
    ),  # presence is the score of a detection; same threshold as in whole images
    "movenet-multipose": Choice(
        _MULTIPOSE, _multipose_on_crops, cpu_only=True, presence=0.25, skeleton="coco17"
    ),  # presence is the score of a detection; same threshold as in whole images
    "mmpose": Choice(None, _mmpose, own_file=True),
}

# If one of these is both detector and estimator, it runs once per frame.
ONE_PASS: dict[str, Choice[OnePass]] = {
    "yolo-pose": Choice(_YOLO_POSE, _yolo_pose),
    "movenet-multipose": Choice(_MULTIPOSE, _multipose, cpu_only=True, sized=True),
}


def detector_choice(name: str) -> Choice[Detector]:
    """Return the entry of a detector; `auto` means the preferred detector."""
    return DETECTORS[PREFERRED_DETECTOR if name == AUTO_DETECTOR else name]


def estimator_choice(name: str) -> Choice[Estimator]:
    """Return the entry of an estimator; `auto` means the default estimator."""
    return ESTIMATORS[DEFAULT_ESTIMATOR if name == AUTO_ESTIMATOR else name]


def build(
    table: dict[str, Choice[Stage]], name: str, options: StageOptions, model: str | None = None, key: str = "model"
) -> Stage:
    """Build the stage `name` of `table`, with the catalogue name or file `model` of its weights, or the default ones.

    A weight, device, precision or file that does not fit is a PoseError, which names the option `key`.
    """
    choice = table[name]
    if choice.cpu_only and options.device == "cuda":
        raise PoseError(f"device: {name} runs on the CPU only; use device auto or cpu, or another network")
    if choice.cpu_only and options.precision != "auto":
        raise PoseError(f"precision: {name} supports only the precision of its weight file; use precision auto")
    weight = weight_file(choice, model, key)
    if weight is None:
        return choice.build(Path(), options)
    if not _is_own(model):
        return choice.build(weight, options)
    return _build_of_own_file(choice, weight, options, name, key)


def _is_own(model: str | None) -> bool:
    from pose.networks.weights import WEIGHTS

    return model is not None and model not in WEIGHTS


def _build_of_own_file(choice: Choice[Stage], weight: Path, options: StageOptions, name: str, key: str) -> Stage:
    """Build a stage with custom weights and run it once, since unsuitable networks mostly fail at run time."""
    from pose.tracking.networks import try_once
    from pose.utils.native_stderr import silenced

    try:
        stage = choice.build(weight, options)
        with silenced(sys.stderr, 2):  # runtimes also print their exceptions there
            try_once(cast("Detector | Estimator | OnePass", stage))
    except PoseError as error:
        if str(error).startswith((str(weight), weight.name)):
            raise type(error)(f"{key}: {error}") from error
        raise
    except Exception as error:  # runtimes raise their own classes, and unsuitable networks cause any error
        raise PoseError(
            f"{key}: {weight} cannot be loaded as {name} ({type(error).__name__}: {in_brief(error)})"
        ) from error
    return stage


def weight_file(choice: Choice[Stage], model: str | None, key: str) -> Path | None:
    """Return the weight file of a stage, of a catalogue name or a custom file; None for a stage without a network.

    A `model` that is neither, a model for a stage without one, and a stage without default weights are UsageErrors.
    """
    from pose.networks.weights import WEIGHTS, locate

    if choice.weight is None and not choice.own_file:
        if model is not None:
            raise UsageError(f"{key}: {model} has no effect, because this stage has no network")
        return None
    name = model or choice.weight
    if name is None:
        raise UsageError(f"{key}: this stage has no default weights; name a file of your own")
    if name in WEIGHTS:
        return locate(name)
    path = Path(name).expanduser()
    if not path.is_file():
        raise UsageError(f"{key}: {name} is neither a file nor a name that `pose-weights list` shows")
    return path
