"""What can be chosen by name: one table a stage, name -> how to build it. Imports happen when something is built.

To add a detector or an estimator, write its file and add one line here (CONTRIBUTING.md shows both).
"""

from __future__ import annotations  # a stage's type is known without loading what it works with

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from pose.errors import PoseError, UsageError, in_brief

if TYPE_CHECKING:
    from pose.networks.options import StageOptions
    from pose.stages import Detector, Estimator, OnePass

Stage = TypeVar("Stage")

AUTO_DETECTOR = AUTO_ESTIMATOR = "auto"
PREFERRED_DETECTOR, STAND_IN_DETECTOR = "rtmdet", "blazepose"
USUAL_ESTIMATOR = "blazepose"


@dataclass(frozen=True, slots=True)
class Choice(Generic[Stage]):
    """One entry of a table.

    weight: its name in the catalogue; None for a stage without a network, or with the user's own only. build: makes
    the stage from that weight's file. cpu_only: its runtime knows neither another device nor another precision than the
    file's. sized: its input's size can be chosen. own_file: the user must name the network's file. presence: how sure
    an estimator is that a person is in a crop when one is; every family measures it in its own way. skeleton: the name
    of an estimator's, with the usual weights; None where they say it themselves.
    """

    weight: str | None
    build: Callable[[Path | None, StageOptions], Stage]
    cpu_only: bool = False
    sized: bool = False
    own_file: bool = False
    presence: float = 0.5
    skeleton: str | None = None


def _blazepose_detector(weight: Path | None, options: StageOptions) -> Detector:
    from pose_detectors.blazepose import BlazePoseDetector

    return BlazePoseDetector(model=weight, options=options)


def _mobilenet(weight: Path | None, options: StageOptions) -> Detector:
    from pose_detectors.mobilenet import MobileNetDetector

    return MobileNetDetector(model=weight, options=options)


def _ssdlite(weight: Path | None, options: StageOptions) -> Detector:
    from pose_detectors.mobilenet import SSDLiteDetector

    return SSDLiteDetector(model=weight, options=options)


def _rtmdet(weight: Path | None, options: StageOptions) -> Detector:
    from pose_detectors.rtmdet import RTMDetDetector

    return RTMDetDetector(model=weight, options=options)


def _yolox(weight: Path | None, options: StageOptions) -> Detector:
    from pose_detectors.yolox import YoloXDetector

    return YoloXDetector(model=weight, options=options)


def _yolo(weight: Path | None, options: StageOptions) -> Detector:
    from pose_detectors.yolo import YoloDetector

    return YoloDetector(model=weight, options=options)


def _yolo_with_pose_network(weight: Path | None, options: StageOptions) -> Detector:
    from pose_detectors.yolo import YoloDetector

    return YoloDetector(model=weight, task="pose", options=options)


def _full_frame(weight: Path | None, options: StageOptions) -> Detector:
    from pose_detectors.full_frame import FullFrameDetector

    return FullFrameDetector()


def _blazepose_full(weight: Path | None, options: StageOptions) -> Estimator:
    from pose.estimators.blazepose import BlazePose

    return BlazePose(model=weight, variant="full", options=options)


def _blazepose_lite(weight: Path | None, options: StageOptions) -> Estimator:
    from pose.estimators.blazepose import BlazePose

    return BlazePose(model=weight, variant="lite", options=options)


def _blazepose_heavy(weight: Path | None, options: StageOptions) -> Estimator:
    from pose.estimators.blazepose import BlazePose

    return BlazePose(model=weight, variant="heavy", options=options)


def _movenet(weight: Path | None, options: StageOptions) -> Estimator:
    from pose.estimators.movenet import MoveNet

    return MoveNet(model=weight, options=options)


def _rtmpose(weight: Path | None, options: StageOptions) -> Estimator:
    from pose.estimators.rtmpose import RTMPose

    return RTMPose(model=weight, options=options)


def _mmpose(weight: Path | None, options: StageOptions) -> Estimator:
    from pose.estimators.mmpose import MMPose

    assert weight is not None, "weight_file asks for it"
    return MMPose(model=weight, options=options)


def _yolo_pose_on_crops(weight: Path | None, options: StageOptions) -> Estimator:
    from pose.estimators.yolo_pose import YoloPose

    return YoloPose(model=weight, options=replace(options, score=None, size=None))


def _yolo_pose(weight: Path | None, options: StageOptions) -> OnePass:
    from pose.estimators.yolo_pose import YoloPose

    return YoloPose(model=weight, options=options)


DETECTORS: dict[str, Choice[Detector]] = {
    "blazepose": Choice("blazepose-detector", _blazepose_detector, cpu_only=True),
    "rtmdet": Choice("rtmdet-nano-person-320", _rtmdet, sized=True),
    "yolox": Choice("yolox-nano-coco-416", _yolox, sized=True),
    "mobilenet": Choice("ssd-mobilenet-v1-coco-300-int8", _mobilenet, cpu_only=True),
    "ssdlite": Choice("ssdlite320-mobilenet-v3", _ssdlite),
    "yolo": Choice("yolo26n", _yolo, sized=True),
    "yolo-pose": Choice("yolo26n-pose", _yolo_with_pose_network, sized=True),
    "full-frame": Choice(None, _full_frame),
}

ESTIMATORS: dict[str, Choice[Estimator]] = {
    "blazepose": Choice("blazepose-landmark-full", _blazepose_full, cpu_only=True, skeleton="blazepose33"),
    "blazepose-lite": Choice("blazepose-landmark-lite", _blazepose_lite, cpu_only=True, skeleton="blazepose33"),
    "blazepose-heavy": Choice("blazepose-landmark-heavy", _blazepose_heavy, cpu_only=True, skeleton="blazepose33"),
    "movenet": Choice("movenet-lightning-int8", _movenet, cpu_only=True, presence=0.45, skeleton="coco17"),
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
        "yolo26n-pose", _yolo_pose_on_crops, presence=0.25, skeleton="coco17"
    ),  # of a detection, as for whole pictures
    "mmpose": Choice(None, _mmpose, own_file=True),
}

# Chosen as detector and as estimator, these do both in one pass.
ONE_PASS: dict[str, Choice[OnePass]] = {
    "yolo-pose": Choice("yolo26n-pose", _yolo_pose),
}


def detector_choice(name: str) -> Choice[Detector]:
    """The entry of a detector; of the one that `auto` prefers."""
    return DETECTORS[PREFERRED_DETECTOR if name == AUTO_DETECTOR else name]


def estimator_choice(name: str) -> Choice[Estimator]:
    """The entry of an estimator; `auto` is the usual one."""
    return ESTIMATORS[USUAL_ESTIMATOR if name == AUTO_ESTIMATOR else name]


def build(
    table: dict[str, Choice[Stage]], name: str, options: StageOptions, model: str | None = None, key: str = "model"
) -> Stage:
    """The stage that `table` calls `name`, with the weights in `model` (None: the usual ones). key: see `weight_file`.

    Raises PoseError when a weight cannot be had, the stage cannot run on the device or in the precision asked for, or
    a file of the user's own is no network of this kind.
    """
    choice = table[name]
    if choice.cpu_only and options.device == "cuda":
        raise PoseError(f"device: {name} runs on the CPU only; use device auto or cpu, or another stage than {name}")
    if choice.cpu_only and options.precision != "auto":
        raise PoseError(f"precision: {name} computes in its file's own; use precision auto")
    weight = weight_file(choice, model, key)
    if weight is None or not _is_own(model):
        return choice.build(weight, options)
    return _build_of_own_file(choice, weight, options, name, key)


def _is_own(model: str | None) -> bool:
    from pose.weights import WEIGHTS

    return model is not None and model not in WEIGHTS


def _build_of_own_file(choice: Choice[Stage], weight: Path, options: StageOptions, name: str, key: str) -> Stage:
    """A stage with a network of anybody, tried once: a network for something else mostly fails in its runtime.

    Raises PoseError that names `key` and the file.
    """
    from pose.people.warm_up import try_once
    from pose.system.silence import silenced

    try:
        stage = choice.build(weight, options)
        with silenced(sys.stderr, 2):  # runtimes write there what they raise as well
            try_once(cast("Detector | Estimator | OnePass", stage))
    except PoseError as error:
        if str(error).startswith((str(weight), weight.name)):
            raise type(error)(f"{key}: {error}") from error
        raise
    except Exception as error:  # runtimes raise classes of their own; a network of another form nearly anything
        raise PoseError(
            f"{key}: {weight} does not work as {name} ({type(error).__name__}: {in_brief(error)})"
        ) from error
    return stage


def weight_file(choice: Choice[Stage], model: str | None, key: str) -> Path | None:
    """The file of a stage's weights; None for a stage without a network.

    model: a catalogue name, or the user's own file; None takes the usual weights. key: what errors call it. Raises
    UsageError when it is neither, and what `pose.weights.locate` raises.
    """
    from pose.weights import WEIGHTS, locate

    if choice.weight is None and not choice.own_file:
        if model is not None:
            raise UsageError(f"{key}: {model} was given for a stage that has no network")
        return None
    name = model or choice.weight
    if name is None:
        raise UsageError(f"{key}: this stage has no usual weights; name a file of your own")
    if name in WEIGHTS:
        return locate(name)
    path = Path(name).expanduser()
    if not path.is_file():
        raise UsageError(f"{key}: {name} is neither a file nor a name that `pose-weights list` shows")
    return path
