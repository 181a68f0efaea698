"""What can be chosen by name: one table a stage, name -> how to build it. Imports happen when something is built.

To add a detector or an estimator, write its file and add one line here (CONTRIBUTING.md shows both).
"""

from __future__ import annotations  # a stage's type is known without loading what it works with

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pose.errors import PoseError, UsageError

if TYPE_CHECKING:
    from pose.config import PipelineConfig
    from pose.networks.yolo import YoloOptions
    from pose.stages import Detector, Estimator, OnePass

Stage = TypeVar("Stage")

AUTO_DETECTOR = "auto"
PREFERRED_DETECTOR, STAND_IN_DETECTOR = "rtmdet", "blazepose"


@dataclass(frozen=True, slots=True)
class Choice(Generic[Stage]):
    """One entry of a table.

    weight: its name in the catalogue; None for a stage without a network, or with the user's own only. build: makes
    the stage from that weight's file. cpu_only: its runtime knows neither another device nor another precision than the
    file's. sized: its input's size can be chosen. own_file: the user must name the network's file. presence: how sure
    an estimator is that a person is in a crop when one is; every family measures it in its own way.
    """

    weight: str | None
    build: Callable[[PipelineConfig, Path | None], Stage]
    cpu_only: bool = False
    sized: bool = False
    own_file: bool = False
    presence: float = 0.5


def _blazepose_detector(config: PipelineConfig, weight: Path | None) -> Detector:
    from pose_detectors.blazepose import BlazePoseDetector

    return BlazePoseDetector(model=weight, threads=config.threads, **_score(config))


def _mobilenet(config: PipelineConfig, weight: Path | None) -> Detector:
    from pose_detectors.mobilenet import MobileNetDetector

    return MobileNetDetector(model=weight, threads=config.threads, **_score(config))


def _ssdlite(config: PipelineConfig, weight: Path | None) -> Detector:
    from pose_detectors.mobilenet import SSDLiteDetector

    return SSDLiteDetector(model=weight, **_hardware(config), **_score(config))


def _rtmdet(config: PipelineConfig, weight: Path | None) -> Detector:
    from pose_detectors.rtmdet import RTMDetDetector

    return RTMDetDetector(model=weight, **_hardware(config), **_score(config), **_size(config))


def _yolox(config: PipelineConfig, weight: Path | None) -> Detector:
    from pose_detectors.yolox import YoloXDetector

    return YoloXDetector(model=weight, **_hardware(config), **_score(config), **_size(config))


def _yolo(config: PipelineConfig, weight: Path | None) -> Detector:
    from pose_detectors.yolo import YoloDetector

    return YoloDetector(model=weight, options=_yolo_options(config))


def _yolo_with_pose_network(config: PipelineConfig, weight: Path | None) -> Detector:
    from pose_detectors.yolo import YoloDetector

    return YoloDetector(model=weight, task="pose", options=_yolo_options(config))


def _full_frame(config: PipelineConfig, weight: Path | None) -> Detector:
    from pose_detectors.full_frame import FullFrameDetector

    return FullFrameDetector()


def _blazepose_full(config: PipelineConfig, weight: Path | None) -> Estimator:
    from pose.estimators.blazepose import BlazePose

    return BlazePose(model=weight, variant="full", threads=config.threads)


def _blazepose_lite(config: PipelineConfig, weight: Path | None) -> Estimator:
    from pose.estimators.blazepose import BlazePose

    return BlazePose(model=weight, variant="lite", threads=config.threads)


def _movenet(config: PipelineConfig, weight: Path | None) -> Estimator:
    from pose.estimators.movenet import MoveNet

    return MoveNet(model=weight, threads=config.threads)


def _rtmpose(config: PipelineConfig, weight: Path | None) -> Estimator:
    from pose.estimators.rtmpose import RTMPose

    return RTMPose(model=weight, **_hardware(config))


def _mmpose(config: PipelineConfig, weight: Path | None) -> Estimator:
    from pose.estimators.mmpose import MMPose

    assert weight is not None, "weight_file asks for it"
    return MMPose(model=weight, **_hardware(config))


def _yolo_pose_on_crops(config: PipelineConfig, weight: Path | None) -> Estimator:
    from pose.estimators.yolo_pose import YoloPose
    from pose.networks.yolo import YoloOptions

    return YoloPose(model=weight, options=YoloOptions(**_hardware(config)))


def _yolo_pose(config: PipelineConfig, weight: Path | None) -> OnePass:
    from pose.estimators.yolo_pose import YoloPose

    return YoloPose(model=weight, options=_yolo_options(config))


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
    "blazepose": Choice("blazepose-landmark-full", _blazepose_full, cpu_only=True),
    "blazepose-lite": Choice("blazepose-landmark-lite", _blazepose_lite, cpu_only=True),
    "movenet": Choice("movenet-lightning-int8", _movenet, cpu_only=True, presence=0.45),
    "rtmpose-t": Choice("rtmpose-t-coco17-256x192", _rtmpose),
    "rtmpose-s": Choice("rtmpose-s-coco17-256x192", _rtmpose),
    "rtmpose-m": Choice("rtmpose-m-coco17-256x192", _rtmpose),
    "rtmpose-l": Choice("rtmpose-l-coco17-256x192", _rtmpose),
    "rtmpose-x": Choice("rtmpose-x-coco17-384x288", _rtmpose),
    "rtmpose-t-halpe26": Choice("rtmpose-t-halpe26-256x192", _rtmpose),
    "rtmpose-s-halpe26": Choice("rtmpose-s-halpe26-256x192", _rtmpose),
    "rtmpose-m-halpe26": Choice("rtmpose-m-halpe26-256x192", _rtmpose),
    "rtmpose-l-halpe26": Choice("rtmpose-l-halpe26-256x192", _rtmpose),
    "rtmpose-x-halpe26": Choice("rtmpose-x-halpe26-384x288", _rtmpose),
    "yolo-pose": Choice("yolo26n-pose", _yolo_pose_on_crops, presence=0.25),  # of a detection, as for whole pictures
    "mmpose": Choice(None, _mmpose, own_file=True),
}

# Chosen as detector and as estimator, these do both in one pass.
ONE_PASS: dict[str, Choice[OnePass]] = {
    "yolo-pose": Choice("yolo26n-pose", _yolo_pose),
}


def detector_choice(name: str) -> Choice[Detector]:
    """The entry of a detector; of the one that `auto` prefers."""
    return DETECTORS[PREFERRED_DETECTOR if name == AUTO_DETECTOR else name]


def choose_detector(config: PipelineConfig) -> tuple[PipelineConfig, str | None]:
    """`config` with the detector that `auto` stands for, and why that is only the stand-in (None: it is not).

    RTMDet finds people of all sizes. Its weights lie on a web server, which not every machine reaches; BlazePose's come
    from the package index. Whoever chose RTMDet's weights or size, or CUDA, gets RTMDet or the error.
    """
    if config.detector != AUTO_DETECTOR:
        return config, None
    from pose.weights import locate_if_reachable

    preferred = replace(config, detector=PREFERRED_DETECTOR)
    weight = DETECTORS[PREFERRED_DETECTOR].weight
    assert weight is not None
    if config.detector_model or config.detector_size or config.device == "cuda" or config.precision != "auto":
        return preferred, None
    found = locate_if_reachable(weight)
    if isinstance(found, Path):
        return preferred, None
    stand_in = replace(config, detector=STAND_IN_DETECTOR, detection_score=None)
    return stand_in, (
        "BlazePose's detector looked for people: it misses those who are far away or half hidden. "
        f"RTMDet's weights could not be had ({found}); `pose-weights fetch {weight}` tries again"
    )


def build(
    table: dict[str, Choice[Stage]],
    name: str,
    config: PipelineConfig,
    model: str | None = None,
    key: str | None = None,
) -> Stage:
    """The stage that `table` calls `name`, with the weights in `model` (None: the usual ones). key: see `weight_file`.

    Raises PoseError when a weight cannot be had, or the stage cannot run on the device or in the precision of `config`.
    """
    choice = table[name]
    key = key or ("estimator_model" if table is ESTIMATORS else "detector_model")
    if choice.cpu_only and config.device == "cuda":
        raise PoseError(f"device: {name} runs on the CPU only; use device auto or cpu, or another stage than {name}")
    if choice.cpu_only and config.precision != "auto":
        raise PoseError(f"precision: {name} computes in its file's own; use precision auto")
    return choice.build(config, weight_file(choice, model, key))


def is_one_pass(config: PipelineConfig) -> bool:
    """Whether detector and estimator are one network, run once a frame."""
    models = {model for model in (config.detector_model, config.estimator_model) if model is not None}
    return config.detector == config.estimator and config.detector in ONE_PASS and len(models) <= 1


def one_pass_model(config: PipelineConfig) -> tuple[str | None, str]:
    """The weights of a network that is detector and estimator, and the key that names them."""
    if config.detector_model is not None:
        return config.detector_model, "detector_model"
    return config.estimator_model, "estimator_model"


def unused_keys(config: PipelineConfig) -> dict[str, str]:
    """The keys that mean nothing to the chosen networks, and why."""
    unused = {}
    if is_one_pass(config):
        name = config.detector
        unused["detect_every"] = f"{name} finds people and joints in one pass, in every frame"
        unused["presence_score"] = f"{name} finds people and joints in one pass; its threshold is detection_score"
    choice = detector_choice(config.detector)
    if choice.weight is None and not choice.own_file:
        unused["detection_score"] = f"{config.detector} has no network that gives a score"
    return unused


def model_files(config: PipelineConfig) -> list[tuple[str, str, Path]]:
    """Role, name and file of the networks that find people and joints. Raises what `weight_file` raises."""
    detector, estimator = (config.detector_model, "detector_model"), (config.estimator_model, "estimator_model")
    if is_one_pass(config):
        detector = estimator = one_pass_model(config)
    files = (
        ("detector", config.detector, weight_file(detector_choice(config.detector), *detector)),
        ("estimator", config.estimator, weight_file(ESTIMATORS[config.estimator], *estimator)),
    )
    return [(role, name, file) for role, name, file in files if file is not None]


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


def _hardware(config: PipelineConfig) -> dict[str, Any]:
    return {"device": config.device, "precision": config.precision, "threads": config.threads}


def _score(config: PipelineConfig) -> dict[str, Any]:
    """The threshold, where it is not the detector's own."""
    return {} if config.detection_score is None else {"score_threshold": config.detection_score}


def _size(config: PipelineConfig) -> dict[str, Any]:
    """The input's side, where it is not the detector's own."""
    return {} if config.detector_size is None else {"image_size": config.detector_size}


def _yolo_options(config: PipelineConfig) -> YoloOptions:
    from pose.networks.yolo import YoloOptions

    return YoloOptions(**_hardware(config), **_score(config), **_size(config))
