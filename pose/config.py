"""Configuration of a pipeline: the dataclass `PipelineConfig`, and functions that load the presets in `configs/`.

This module has no heavy imports, so that commands parse their options before any network is loaded.
"""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, cast, get_args

from pose.errors import UsageError
from pose.lifting.names import DEFAULT_LIFTER, DEFAULT_LIVE_LIFTER
from pose.networks.options import DEFAULT_OPTIONS, StageOptions
from pose.registry import (
    AUTO_DETECTOR,
    AUTO_ESTIMATOR,
    DEFAULT_ESTIMATOR,
    DETECTORS,
    ESTIMATORS,
    FALLBACK_DETECTOR,
    ONE_PASS,
    PREFERRED_DETECTOR,
    detector_choice,
    estimator_choice,
    weight_file,
)
from pose.tracking.box_trackers import BOX_TRACKERS
from pose.tracking.config import TrackingConfig
from pose.utils.device import Device, Precision, driver_present, onnx_has_cuda
from pose.utils.options import check_options, option
from pose.utils.presets import preset_values
from pose.utils.resources import available_cores
from pose.world.given import read_heights

_TRACKING = TrackingConfig()
DEVICES: tuple[str, ...] = get_args(Device)
PRECISIONS: tuple[str, ...] = get_args(Precision)
AUTO_LIFTER = AUTO_ENSEMBLE = "auto"
DEFAULT_ENSEMBLE = "movenet-thunder"
DEFAULT_ENSEMBLE_RATE = 5.0  # Hz; more is not more accurate (docs/studies/presets.md)
DEFAULT_KEYPOINT_RATE = 15.0  # Hz; docs/studies/presets.md has measurements
AUTO_CAMERA, FIXED_CAMERA = "auto", "fixed"
CAMERAS = (AUTO_CAMERA, FIXED_CAMERA, "rotating", "free")
# Keys of the detector and estimator networks. Scores of different networks are not comparable.
NETWORK_KEYS = (
    "detector", "estimator", "detector_model", "estimator_model", "detection_score", "detector_size", "presence_score",
    "ensemble", "ensemble_rate", "mirrored_crops",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineConfig:
    """Stages of a pipeline and their settings. The help of `pose-run` describes the fields.

    If detector and estimator have the same name and weights, and `pose.registry.ONE_PASS` contains the name, one
    network does both in one pass per frame.

    Raises:
        UsageError: For an invalid value.
    """

    detector: str = option(
        AUTO_DETECTOR,
        "person detector; auto: rtmdet, or blazepose if the weights of rtmdet are not available",
        choices=(AUTO_DETECTOR, *DETECTORS),
    )
    estimator: str = option(
        AUTO_ESTIMATOR,
        "2D keypoint network; auto: blazepose, or the network of the preset accurate (offline on CUDA)",
        choices=(AUTO_ESTIMATOR, *ESTIMATORS),
    )
    detector_model: str | None = option(None, "weights of the detector: a file, or a name (pose-weights list)")
    estimator_model: str | None = option(None, "weights of the estimator: a file, or a name (pose-weights list)")
    tracker: str = option(
        _TRACKING.tracker, "re-identification of people who come back into view", choices=tuple(BOX_TRACKERS)
    )
    ensemble: str | None = option(
        None,
        "further 2D networks, joined by +, whose joints are averaged with those of the estimator, such as "
        "movenet-thunder; auto: movenet-thunder if its weights are available (offline)",
    )
    ensemble_rate: float = option(
        DEFAULT_ENSEMBLE_RATE,
        "frames per second for the networks in ensemble; their difference from the estimator is interpolated; "
        "0: every sample (offline)",
        minimum=0.0,
        maximum=1000.0,
    )
    mirrored_crops: bool = option(False, "average the joints with those of the mirrored crops; takes twice the time")
    keypoint_rate: float = option(
        DEFAULT_KEYPOINT_RATE,
        "samples of the 2D keypoints per second, more where motion is fast; other frames are interpolated; "
        "0: every frame (offline)",
        minimum=0.0,
        maximum=1000.0,
    )
    lifter: str = option(
        AUTO_LIFTER,
        "2D to 3D: offline (whole videos), sliding (its weights, frame by frame), stream (small, causal), or a file; "
        "auto: sliding if live, else offline",
    )
    lookahead: int = option(
        0, "delay of the streaming lifter in frames; more look-ahead is more accurate", minimum=0, maximum=600
    )
    steady: bool = option(
        False, "smooth the newest poses of the lifter sliding: 40 % less jitter, 2 mm more error (live, no --lookahead)"
    )
    camera: str = option(
        AUTO_CAMERA,
        "camera motion; auto: measure rotation, and translation where the images show one; fixed: measure nothing; "
        "rotating: rotation only; free: always translation (auto, free: translation needs pose-run[slam])",
        choices=CAMERAS,
    )
    hands: bool = option(False, "find the hands of tracked people: 21 points each")
    face: bool = option(
        False,
        "find the faces of tracked people: 468 points each, head pose, open eyes and mouth; people are not identified",
    )
    repair: bool = option(
        True,
        "undo left-right swaps and remove outliers before lifting; the 2D keypoints in the results stay as detected",
    )
    constant_bones: bool = option(True, "keep bone lengths constant over time for each person")
    fit: bool = option(True, "refine the 3D motion to agree with the 2D projection (offline, with constant bones)")
    device: str = option(DEFAULT_OPTIONS.device, "device of the networks; auto: cuda if available", choices=DEVICES)
    precision: str = option(
        DEFAULT_OPTIONS.precision,
        "numerical precision of the networks; auto: precision of the file, or half on cuda",
        choices=PRECISIONS,
    )
    threads: int = option(DEFAULT_OPTIONS.threads, "CPU threads per network", minimum=1, maximum=256)
    max_people: int = option(_TRACKING.max_people, "people tracked at a time, at most", minimum=1, maximum=1000)
    detect_every: float = option(
        _TRACKING.detection_interval_s,
        "seconds between detection passes while people are tracked and the image changes; 0: every frame",
        minimum=0.0,
    )
    detection_score: float | None = option(
        None, "minimum score of a detection; default: the detector's own", minimum=0.0, maximum=1.0
    )
    detector_size: int | None = option(
        None, "side of the detector's input, px; default: the size stored in the file", minimum=32, maximum=2560
    )
    presence_score: float | None = option(
        None,
        "minimum confidence that a crop shows a person, below which its track ends; default: the estimator's own",
        minimum=0,
        maximum=1,
    )
    seed: int = option(0, "random seed", minimum=0, maximum=2**63 - 1)

    def __post_init__(self) -> None:
        check_options(self)
        if self.detector_size is not None and not detector_choice(self.detector).sized:
            raise UsageError(f"detector_size: {self.detector} has a fixed input size; leave it out")
        for name in self.further_estimators:
            if name not in ESTIMATORS or ESTIMATORS[name].own_file:
                known = ", ".join(name for name, choice in ESTIMATORS.items() if not choice.own_file)
                raise UsageError(f"ensemble: {name!r} is unknown; known: {known}")
        defaults = {entry.name: entry.default for entry in fields(self)}
        for key, reason in unused_keys(self).items():
            if getattr(self, key) != defaults[key]:
                raise UsageError(f"{key}: {reason}; leave it out")

    @property
    def further_estimators(self) -> list[str]:
        """Names of the estimators in `ensemble`."""
        return [] if self.ensemble in (None, AUTO_ENSEMBLE) else str(self.ensemble).split("+")

    @property
    def stage_options(self) -> StageOptions:
        """Options of the detector and estimator networks: device, precision, threads, minimum score and input size."""
        return StageOptions(
            device=cast(Device, self.device),
            precision=cast(Precision, self.precision),
            threads=self.threads,
            score=self.detection_score,
            size=self.detector_size,
        )


@dataclass(frozen=True, kw_only=True)  # no slots: used beside other base classes
class LiveConfig:
    """Settings of a live loop, shared by `pose-webcam`, the web server and `LiveLoop`; UsageError if invalid."""

    ahead: str | None = option(
        None, "predict poses for the time of display: auto (measured delay), or ms; not with --lookahead"
    )
    bridge: float = option(
        0.5, "seconds for which the pose of an occluded person is predicted; 0: never", minimum=0, maximum=1
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWorldConfig:
    """Settings of world coordinates in live processing; UsageError for an invalid value."""

    world: bool = option(True, "estimate gravity and floor, and write world coordinates")
    pitch: float | None = option(
        None, "pitch of the camera in degrees, positive if it looks up; default: estimated", minimum=-90, maximum=90
    )
    roll: float | None = option(
        None, "roll of the camera in degrees, clockwise; default: estimated", minimum=-180, maximum=180
    )
    height: str | None = option(None, "body height in m, for the scale; for all people (1.82) or by id (1:1.82,2:1.65)")
    smooth: bool = option(True, "smooth the motion")

    def __post_init__(self) -> None:
        check_options(self)
        read_heights(self.height)
        if not self.world:
            for name in ("pitch", "roll", "height"):
                if getattr(self, name) is not None:
                    raise UsageError(f"{name}: requires world coordinates; give --world")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldConfig(LiveWorldConfig):
    """Settings of world coordinates in offline processing."""

    fill_gaps: bool = option(True, "fill gaps of up to 0.5 s in a person's motion, and mark the filled frames")
    join_tracks: bool = option(True, "join broken tracks of one person, and drop tracks that are rarely visible")
    cutoff: float | None = option(
        None,
        "cut-off frequency of the smoothing in Hz; default: by residual analysis, 6 to 12",
        minimum=0.5,
        maximum=100,
    )
    foot_lock: bool = option(True, "remove foot skating: standing feet do not slide")

    def __post_init__(self) -> None:
        LiveWorldConfig.__post_init__(self)
        if self.cutoff is not None and not self.smooth:
            raise UsageError("cutoff: is that of the smoothing, which --no-smooth turns off")


PresetName = Literal["accurate", "balanced", "best", "fast", "permissive", "standard"]


class PipelineChanges(TypedDict, total=False):
    """Fields of `PipelineConfig` as keyword arguments, for type checkers; a test compares both."""

    estimator: str
    detector_model: str | None
    estimator_model: str | None
    tracker: str
    ensemble: str | None
    ensemble_rate: float
    mirrored_crops: bool
    keypoint_rate: float
    lifter: str
    lookahead: int
    steady: bool
    camera: Literal["auto", "fixed", "rotating", "free"]
    hands: bool
    face: bool
    repair: bool
    constant_bones: bool
    fit: bool
    device: Device
    precision: Precision
    threads: int
    max_people: int
    detect_every: float
    detection_score: float | None
    detector_size: int | None
    presence_score: float | None
    seed: int


def with_threads(config: PipelineConfig, workers: int) -> PipelineConfig:
    """Return `config` with the CPU threads limited to an equal share of the cores for each of `workers` workers."""
    return replace(config, threads=max(1, min(config.threads, available_cores() // workers)))


def for_each_camera(config: PipelineConfig, count: int) -> PipelineConfig:
    """Return `config` with the threads for the networks of each of `count` recorded cameras.

    They do not depend on the free memory, since networks round differently with other numbers of threads.
    """
    from pose.utils.device import resolve_device

    return with_threads(config, min(count, available_cores()) if resolve_device(config.device) == "cpu" else 1)


def choose_networks(config: PipelineConfig, *, live: bool = False) -> PipelineConfig:
    """Return `config` with the value `auto` of lifter and estimator replaced by concrete networks.

    The lifter becomes `DEFAULT_LIVE_LIFTER` in live runs and `DEFAULT_LIFTER` otherwise. The estimator becomes
    `DEFAULT_ESTIMATOR` in live runs, and if `config.detector` is not `auto`. Otherwise, all fields with their default
    values get those of the preset that `default_preset` names.
    """
    if config.lifter == AUTO_LIFTER:
        config = replace(config, lifter=DEFAULT_LIVE_LIFTER if live else DEFAULT_LIFTER)
    if config.estimator != AUTO_ESTIMATOR:
        return config
    if live or config.detector != AUTO_DETECTOR:
        return replace(config, estimator=DEFAULT_ESTIMATOR)
    defaults = {entry.name: entry.default for entry in fields(config)}
    preset: dict[str, Any] = dict(preset_values(default_preset(config.device)))
    return replace(config, **{key: value for key, value in preset.items() if getattr(config, key) == defaults[key]})


def choose_detector(config: PipelineConfig) -> tuple[PipelineConfig, str | None]:
    """Replace the detector `auto` by a concrete detector.

    RTMDet is preferred because it detects people of all sizes, but its weights are on a web server that not every
    machine can reach. The fallback is BlazePose, whose weights come from the package index. BlazePose supports only
    the CPU. There is therefore no fallback if the device is "cuda", or if a precision, a detector model or a detector
    size is set. The second value is the reason if the fallback is used (else None).
    """
    if config.detector != AUTO_DETECTOR:
        return config, None
    from pose.networks.weights import locate_if_reachable

    preferred = replace(config, detector=PREFERRED_DETECTOR)
    weight = DETECTORS[PREFERRED_DETECTOR].weight
    assert weight is not None
    if config.detector_model or config.detector_size or config.device == "cuda" or config.precision != "auto":
        return preferred, None
    found = locate_if_reachable(weight)
    if isinstance(found, Path):
        return preferred, None
    fallback = replace(config, detector=FALLBACK_DETECTOR, detection_score=None)
    return fallback, (
        "The detector is BlazePose, which misses distant and half occluded people. "
        f"RTMDet's weights are not available ({found}); `pose-weights fetch {weight}` tries again"
    )


def choose_ensemble(config: PipelineConfig, *, live: bool = False) -> tuple[PipelineConfig, str | None]:
    """Replace the ensemble `auto` by MoveNet Thunder, or by no network if live or without its weights.

    Returns:
        The configuration, and the reason if offline no network is used (else None).
    """
    if config.ensemble != AUTO_ENSEMBLE:
        return config, None
    if live:
        return replace(config, ensemble=None), None
    from pose.networks.weights import locate_if_reachable

    for weight in (DEFAULT_ENSEMBLE, f"{DEFAULT_ENSEMBLE}-graph"):
        found = locate_if_reachable(weight)
        if not isinstance(found, Path):
            return replace(config, ensemble=None), (
                f"The joints are those of {config.estimator} alone, which is less accurate. MoveNet Thunder's weights "
                f"are not available ({found}); `pose-weights fetch {weight}` tries again"
            )
    return replace(config, ensemble=DEFAULT_ENSEMBLE), None


def choose_available(config: PipelineConfig, *, live: bool = False) -> tuple[PipelineConfig, str | None]:
    """Replace detector and ensemble `auto` by networks with available weights; return the reasons of fallbacks."""
    config, detector_reason = choose_detector(config)
    config, ensemble_reason = choose_ensemble(config, live=live)
    return config, ". ".join(filter(None, (detector_reason, ensemble_reason))) or None


def is_one_pass(config: PipelineConfig) -> bool:
    """Return whether detector and estimator are one network, run once per frame."""
    models = {model for model in (config.detector_model, config.estimator_model) if model is not None}
    return config.detector == config.estimator and config.detector in ONE_PASS and len(models) <= 1


def one_pass_model(config: PipelineConfig) -> tuple[str | None, str]:
    """Return the weights of a one-pass network, a catalogue name, file or None, and the configuration key of them."""
    key = "estimator_model" if config.detector_model is None else "detector_model"
    return getattr(config, key), key


def default_skeleton(config: PipelineConfig) -> str | None:
    """Return the name of the 2D skeleton; None if only the weight file determines it."""
    if config.estimator_model is not None or config.detector_model is not None:
        return None
    return ESTIMATORS[config.estimator].skeleton


def unused_keys(config: PipelineConfig) -> dict[str, str]:
    """Return the configuration keys that have no effect on the chosen networks, each with the reason."""
    unused = {}
    if is_one_pass(config):
        reason = f"{config.detector} finds people and joints in one pass"
        unused["detect_every"] = unused["keypoint_rate"] = f"{reason}, in every frame"
        unused["ensemble"] = unused["ensemble_rate"] = unused["mirrored_crops"] = reason
        unused["presence_score"] = f"{reason}; its threshold is detection_score"
    choice = detector_choice(config.detector)
    if choice.weight is None and not choice.own_file:
        unused["detection_score"] = f"{config.detector} has no network that gives a score"
    return unused


def model_files(config: PipelineConfig) -> list[tuple[str, str, Path]]:
    """Return (role, name, weight file) of the detector and of the estimator. Missing files are downloaded.

    The roles are "detector", "estimator" and "ensemble". A stage without a network, such as the detector "full-frame",
    is left out.

    Raises:
        UsageError: If `detector_model` or `estimator_model` is neither a catalogue name nor a file, if a model is set
            for a stage without a network, or if none is set for a stage without default weights.
        CorruptWeightError: If a weight file is damaged.
        FetchError: If a weight file is missing and cannot be downloaded.
    """
    detector, estimator = (config.detector_model, "detector_model"), (config.estimator_model, "estimator_model")
    if is_one_pass(config):
        detector = estimator = one_pass_model(config)
    files = (
        ("detector", config.detector, weight_file(detector_choice(config.detector), *detector)),
        ("estimator", config.estimator, weight_file(estimator_choice(config.estimator), *estimator)),
    )
    further = [
        ("ensemble", name, weight_file(ESTIMATORS[name], None, "ensemble")) for name in config.further_estimators
    ]
    return [(role, name, file) for role, name, file in (*files, *further) if file is not None]


def default_preset(device: str) -> str:
    """Return the default preset: 'accurate' if CUDA and an ONNX Runtime for it are present, else 'standard'."""
    if device == "cuda" or (device == "auto" and driver_present() and onnx_has_cuda()):
        return "accurate"
    return "standard"


def load_preset(name: str, **changes: Any) -> PipelineConfig:
    """Load a preset with some fields changed.

    Raises:
        UsageError: For an unknown preset, key or value.
    """
    values = preset_values(name) | changes
    known = [entry.name for entry in fields(PipelineConfig)]
    if unknown := [key for key in values if key not in known]:
        raise UsageError(f"unknown key {unknown[0]!r}; known: {', '.join(known)}")
    return PipelineConfig(**values)


def with_networks_of(config: PipelineConfig, preset: str) -> PipelineConfig:
    """Return `config` with the networks of a preset.

    Settings that have no effect on these networks get the values of the preset.

    Raises:
        UsageError: If there is no preset of this name.
    """
    networks = load_preset(preset)
    kept = {entry.name for entry in fields(PipelineConfig)} - set(NETWORK_KEYS) - set(unused_keys(networks))
    return replace(networks, **{name: getattr(config, name) for name in kept})
