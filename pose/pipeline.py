"""The stages in their order, and the driver that files and live sources share.

for result in Pipeline.from_preset("fast").run("clip.mp4"):
    print(result.time, result.people.ids, result.poses.root)
"""

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pose.builders import DETECTORS, ESTIMATORS, ONE_PASS, build
from pose.camera import Camera, intrinsics_from_focal
from pose.camera_motion.measure import BackgroundMotion
from pose.config import (
    FIXED_CAMERA,
    PipelineConfig,
    choose_detector,
    choose_networks,
    is_one_pass,
    load_preset,
    model_files,
    one_pass_model,
    usual_skeleton,
)
from pose.errors import UsageError
from pose.files import ModelInfo, RunInfo
from pose.hands.network import WEIGHTS as HAND_WEIGHTS
from pose.hands.network import HandNetwork, PalmDetector
from pose.hands.tracker import HandTracker
from pose.incoming import IncomingFrames
from pose.lifter.predict import checkpoint_path
from pose.networks.input import shared_uploads
from pose.people.config import TrackingConfig
from pose.people.one_pass import OnePassPeople
from pose.people.people_tracker import PeopleTracker
from pose.people.warm_up import warm_up_lifter, warm_up_networks, warm_up_one_pass, warm_up_tracker
from pose.skeletons import Skeleton, get_skeleton
from pose.stages import Detector, LifterStage, PeopleStage, Refining
from pose.system.device import resolve_device, seed_torch, torch_threads
from pose.system.prefetch import prefetch
from pose.system.times import StageTimes
from pose.types import U8, Frame, FrameResult, People
from pose.video import Source, open_source
from pose.weights import locate, sha256_of

if TYPE_CHECKING:
    from pose.lifter.predict import Lifter
    from pose.result import Result
    from pose.view.overlay import Overlay

LIFTER_THREADS = 1  # it is small: on a busy machine its threads wait for each other many times longer than they compute


class Pipeline:
    """Frames in, tracked people in 2D and 3D out. Networks are loaded once; every `run` starts with new identities.

    config: with the detector and the lifter that `auto` stands for. stand_in: why the detector is not the one that
    `auto` prefers; None where it is. device: where networks run. times: seconds spent in each stage so far. skeleton:
    of the 2D keypoints. live: as given. turn: held
    while the 2D networks see a frame, so that sessions in several threads can share them.
    """

    def __init__(
        self,
        config: PipelineConfig | None = None,
        *,
        intrinsics: NDArray[np.float64] | None = None,
        live: bool = False,
        lazy: bool = False,
        detector: Detector | None = None,
    ) -> None:
        """Load the networks.

        Args:
            config: which stages run, and how; the defaults of `PipelineConfig` if None.
            intrinsics: (3, 3) px of the camera; None assumes a field of view.
            live: answer every frame at once, or `config.lookahead` frames later, with a streaming lifter. Networks are
                run once now, so that the first frames are not delayed.
            lazy: load a network when it is first used, for runs whose results may be in the cache.
            detector: a person detector of your own, which replaces `config.detector`.

        Raises:
            PoseError: when a weight or the device is not available, or the lifter cannot stream; if lazy, when the
                network is loaded.
        """
        config = config or PipelineConfig()
        self._own_detector = detector
        if detector is not None:  # the one that needs no weights stands for it
            config = replace(config, detector="full-frame", detector_model=None, detection_score=None)
        config = choose_networks(config, live=live)
        self.config, self.stand_in = choose_detector(config)
        self._intrinsics = intrinsics
        self.times = StageTimes()
        self.turn = threading.Lock()
        self.device = resolve_device(config.device)
        self.live = live
        if not lazy:
            self._load()
        if live:
            warm_up_lifter(self.lifter_stage(self.camera((256, 256))), len(self.skeleton))

    @classmethod
    def from_preset(
        cls,
        name: str,
        *,
        intrinsics: NDArray[np.float64] | None = None,
        live: bool = False,
        detector: Detector | None = None,
        **changes: Any,
    ) -> Self:
        """The pipeline of a preset in `configs/`, with some fields of its `PipelineConfig` changed."""
        return cls(load_preset(name, **changes), intrinsics=intrinsics, live=live, detector=detector)

    def _load(self) -> tuple[object, ...]:
        """All networks, those that are there already too."""
        return self._lifter, self._found_by, self._hand_networks

    @cached_property
    def _lifter(self) -> "Lifter":
        from pose.lifter.load import load_lifter

        config = self.config
        lifter = load_lifter(config.lifter, self.device)
        if not lifter.streaming and (self.live or config.lookahead):
            key = "lifter" if self.live else "lookahead"
            raise UsageError(f"{key}: {config.lifter} sees whole windows and cannot stream; use the lifter sliding")
        seed_torch(config.seed)
        return lifter

    @cached_property
    def _found_by(self) -> tuple[Skeleton, Callable[[], PeopleStage]]:
        stages = _people_stages(self.config, self.times, self._own_detector, warm=self.live)
        seed_torch(self.config.seed)
        return stages

    @cached_property
    def _hand_networks(self) -> tuple[HandNetwork, PalmDetector] | None:
        if not self.config.hands:
            return None
        return HandNetwork(threads=self.config.threads), PalmDetector(threads=self.config.threads)

    def hand_tracker(self) -> HandTracker | None:
        """What finds the hands of people in one stream; None where the configuration asks for no hands."""
        if self._hand_networks is None:
            return None
        return HandTracker(*self._hand_networks, self.skeleton)

    @cached_property
    def skeleton(self) -> Skeleton:
        if "_found_by" not in self.__dict__ and (name := usual_skeleton(self.config)) is not None:
            return get_skeleton(name)
        return self._found_by[0]

    def people_stage(self) -> PeopleStage:
        """A stage that finds and follows people, and knows of nobody yet."""
        return self._found_by[1]()

    @property
    def models(self) -> tuple[ModelInfo, ...]:
        """The networks that take part, with the hashes of their weights."""
        known = tuple(ModelInfo(role, name, sha256_of(file)) for role, name, file in model_files(self.config))
        lifter = self.config.lifter
        if self.config.hands:
            known += tuple(ModelInfo("hands", name, sha256_of(locate(name))) for name in HAND_WEIGHTS)
        return (*known, ModelInfo("lifter", lifter, sha256_of(checkpoint_path(lifter))))

    def camera(self, image_size: tuple[int, int], focal_35mm: float | None = None) -> Camera:
        """The camera that the 3D of a picture of (width, height) px refers to.

        focal_35mm: of the lens, where the file says it; what was given to the pipeline counts more.
        """
        if self._intrinsics is None and focal_35mm is not None:
            return Camera.of(image_size, intrinsics_from_focal(image_size, focal_35mm))
        return Camera.of(image_size, self._intrinsics)

    def run_info(
        self, source: str, fps: float, image_size: tuple[int, int], focal_35mm: float | None = None
    ) -> RunInfo:
        """What result files say of a run over pictures of (width, height) px. source, fps: as in `RunInfo`."""
        camera, settings = self.camera(image_size, focal_35mm), asdict(self.config)
        if self._own_detector is not None:
            settings["detector"] = self._own_detector.name
        return RunInfo(
            source=source, fps=fps, camera=camera, skeleton=self.skeleton, models=self.models, settings=settings
        )

    def lifter_stage(self, camera: Camera) -> LifterStage:
        """The lifter for the pictures of a camera, with nobody's past; it repairs and refines what it is set to."""
        config = self.config
        if self._lifter.streaming:
            from pose.lifter.refined import FinalAnswers
            from pose.lifter.stream import REFINE, LifterStream, StreamLifter

            stream = LifterStream(self._lifter, self.skeleton, camera, config.lookahead)
            stage = StreamLifter(stream, repair=config.repair, refine=REFINE if stream.refines else 0)
            return FinalAnswers(stage) if stage.refines and not self.live else stage
        from pose.lifter.offline import OfflineLifter

        return OfflineLifter(
            self._lifter, self.skeleton, camera, repair=config.repair, constant_bones=config.constant_bones
        )

    def session(self, image_size: tuple[int, int], focal_35mm: float | None = None) -> "Session":
        """A new stream of pictures of (width, height) px, with identities of its own. focal_35mm: as of `camera`."""
        return Session(self, image_size, focal_35mm)

    def run(self, source: Source | str | Path, *, stop: threading.Event | None = None) -> Iterator[FrameResult]:
        """The result of every frame, in order, as soon as it is final; the delay and the memory are bounded.

        source: what `pose.video.open_source` returns or takes. stop: when it is set, no further frame is read, and what
        was read is finished. Raises PoseError when the source cannot be read.
        """
        if not isinstance(source, Source):
            with open_source(str(source)) as opened:
                yield from self.run(opened, stop=stop)
            return
        session = self.session(source.info.size, source.info.focal_35mm)
        for frame in prefetch(source, self.times, stop or threading.Event()):
            yield from session.push(frame)
        yield from session.flush()

    def process(
        self,
        source: Source | str | Path,
        *,
        world: bool = True,
        heights: Mapping[int | None, float] | None = None,
        pitch: float | None = None,
        roll: float | None = None,
        smooth: bool = True,
        fill_gaps: bool = True,
        join_tracks: bool = True,
        foot_lock: bool = True,
        start: float = 0.0,
        end: float = math.inf,
    ) -> "Result":
        """Process a whole video and put its people into a world, as `pose-run` does.

        The arguments are options of `pose-run`, with the same defaults. Unlike `run`, which yields frames as soon as
        they are final, this returns when the last frame is known, since the world depends on all of them.

        Args:
            source: path of a video, a folder or glob of images, a URL, or what `pose.video.open_source` returns.
            world: find gravity and floor, join tracks, fill gaps and smooth; False returns camera coordinates only.
            heights: body heights by id, m; None stands for everybody.
            pitch: elevation of the camera's view above the horizon, degrees; estimated where neither is given.
            roll: clockwise rotation of the camera about its view, degrees.
            smooth: smooth the motion.
            fill_gaps: fill gaps of up to half a second.
            join_tracks: join tracks of one person and drop short ones.
            foot_lock: hold feet that stand.
            start: process from this second of the video on; for a path.
            end: stop at this second.

        Returns:
            Everybody in all frames.

        Raises:
            PoseError: where the source cannot be read.
        """
        from pose.result import Result
        from pose.world.clean import Steps
        from pose.world.frame import up_of

        up = None if pitch is None and roll is None else up_of(pitch or 0.0, roll or 0.0)
        options = {
            "world": world, "pitch": pitch, "roll": roll, "height": _height_text(heights or {}), "smooth": smooth,
            "fill_gaps": fill_gaps, "join_tracks": join_tracks, "foot_lock": foot_lock,
        }  # fmt: skip
        with ExitStack() as stack:
            opened = source
            if not isinstance(opened, Source):
                opened = stack.enter_context(open_source(str(opened), start=start, end=end))
            info = self.run_info(opened.name, opened.info.fps, opened.info.size, opened.info.focal_35mm)
            span = {"start": start, "end": end if math.isfinite(end) else None}
            info = replace(info, settings={**span, **info.settings, **options})
            steps = Steps(
                bones=self.config.constant_bones, fill=fill_gaps, smooth=smooth, feet=foot_lock,
                camera_known=info.camera.known, up=up, heights=heights or {},
            )  # fmt: skip
            return Result.of(self.run(opened), info, steps if world else None, join=join_tracks)


class Session:
    """One stream in flight: the state of identities and of the lifter. Live and offline drivers both push frames.

    `push` is `track` and `lift` one after the other; two threads that do one each let them overlap. camera: that the 3D
    refers to.
    """

    def __init__(self, pipeline: Pipeline, image_size: tuple[int, int], focal_35mm: float | None = None) -> None:
        self._times = pipeline.times
        self._turn = pipeline.turn
        self._incoming = IncomingFrames(image_size)
        self._skeleton = pipeline.skeleton
        self._overlays: dict[bool, Overlay] = {}
        self._pipeline = pipeline
        self.camera = pipeline.camera(image_size, focal_35mm)

    @cached_property
    def _people(self) -> PeopleStage:
        return self._pipeline.people_stage()

    @cached_property
    def _hands(self) -> HandTracker | None:
        return self._pipeline.hand_tracker()

    @cached_property
    def _lifter(self) -> LifterStage:
        return self._pipeline.lifter_stage(self.camera)

    @cached_property
    def _background(self) -> BackgroundMotion | None:
        if self._pipeline.config.camera == FIXED_CAMERA:
            return None
        return BackgroundMotion(float(self.camera.matrix[0, 0]), self._skeleton, self.camera.known)

    def push(self, frame: Frame) -> list[FrameResult]:
        """Take the next frame; return the frames that are final now, oldest first.

        Raises UsageError for a picture of another size than the session's, or a time that does not increase.
        """
        return self.lift(self.track(frame))

    def track(self, frame: Frame) -> People:
        """The people of the next frame, in 2D. Raises what `push` raises."""
        self._incoming.check(frame)
        with self._turn, self._times.measure("track"), shared_uploads():
            people = self._people.step(frame.image, frame.index, frame.time)
            if self._hands is not None:
                with self._times.measure("hands"):
                    people = replace(people, hands=self._hands.step(frame.image, people))
            if self._background is None:
                return people
            with self._times.measure("camera motion"):
                return replace(people, background=self._background.step(frame.image, people))

    def lift(self, people: People) -> list[FrameResult]:
        """Take the people of the next frame; return the frames that are final now, oldest first."""
        with self._times.measure("lift"), torch_threads(LIFTER_THREADS):
            return self._lifter.push(people)

    @property
    def refines(self) -> bool:
        """Whether `take_refined` gives each frame a second time: live, with a lifter that slides."""
        return isinstance(self._lifter, Refining) and self._lifter.refines

    def take_refined(self) -> list[FrameResult]:
        """The frames that are refined since the last call, oldest first; after `flush`, all that were lifted."""
        return self._lifter.take_refined() if isinstance(self._lifter, Refining) else []

    def draw(self, frame: Frame, result: FrameResult, *, inset: bool = False, bgr: bool = False) -> U8:
        """The picture with the people of its result on it, a new (H, W, 3) uint8. Call it in the order of the frames.

        inset: with the people in 3D, in a corner of a landscape picture and beside others, which makes it wider. bgr:
        in the order that OpenCV shows and writes; else RGB. Raises UsageError when the result is another frame's.
        """
        if result.index != frame.index:
            raise UsageError(f"the result is of frame {result.index}, the image is frame {frame.index}")
        if inset not in self._overlays:
            from pose.view.overlay import Overlay

            self._overlays[inset] = Overlay(frame.size, self._skeleton, inset)
        drawn = self._overlays[inset].draw(frame.image, result)
        return np.ascontiguousarray(drawn[:, :, ::-1]) if bgr else drawn

    def flush(self) -> list[FrameResult]:
        """The source has ended: return all frames not yet returned."""
        with self._times.measure("lift"), torch_threads(LIFTER_THREADS):
            return self._lifter.flush()


def _height_text(heights: Mapping[int | None, float]) -> str | None:
    """As the option --height takes them; None where there are none."""
    return ",".join(f"{value}" if one is None else f"{one}:{value}" for one, value in heights.items()) or None


def _people_stages(
    config: PipelineConfig, times: StageTimes, detector: Detector | None = None, *, warm: bool = False
) -> tuple[Skeleton, Callable[[], PeopleStage]]:
    """The 2D skeleton, and a factory of stages that detect and track people; networks are loaded once.

    detector: instead of the one that `config` names. warm: run the networks once, too.
    """
    options = config.stage_options
    tracking = TrackingConfig(
        tracker=config.tracker, max_people=config.max_people, detection_interval_s=config.detect_every
    )
    if warm:
        warm_up_tracker(config.tracker)
    if is_one_pass(config):
        network = build(ONE_PASS, config.detector, options, *one_pass_model(config))
        if warm:
            warm_up_one_pass(network)
        return network.skeleton, partial(OnePassPeople, network, tracking, times=times)
    if detector is None:
        detector = build(DETECTORS, config.detector, options, config.detector_model, "detector_model")
    estimator = build(ESTIMATORS, config.estimator, options, config.estimator_model, "estimator_model")
    if warm:
        warm_up_networks(detector, estimator)
    presence = ESTIMATORS[config.estimator].presence if config.presence_score is None else config.presence_score
    tracking = replace(tracking, min_presence=presence)
    return estimator.skeleton, partial(PeopleTracker, detector, estimator, tracking, times=times)
