"""The pipeline: the stages in their order, and the driver shared by files and live sources.

for result in Pipeline.from_preset("fast").run("clip.mp4"):
    print(result.time, result.people.ids, result.poses.root)
"""

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pose.camera import Camera, intrinsics_from_focal
from pose.camera_motion.measure import BackgroundMotion
from pose.config import (
    FIXED_CAMERA,
    PipelineConfig,
    choose_detector,
    choose_networks,
    load_preset,
    model_files,
    usual_skeleton,
)
from pose.errors import UsageError
from pose.faces.network import WEIGHT as FACE_WEIGHT
from pose.faces.network import FaceNetwork
from pose.faces.tracker import FaceTracker
from pose.files import ModelInfo, RunInfo
from pose.fit.log import FitLog
from pose.hands.network import WEIGHTS as HAND_WEIGHTS
from pose.hands.network import HandNetwork, PalmDetector
from pose.hands.tracker import HandTracker
from pose.incoming import IncomingFrames
from pose.lifter.predict import checkpoint_path
from pose.networks.input import shared_uploads
from pose.people.warm_up import warm_up_lifter
from pose.people_stages import people_stages
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

LIFTER_THREADS = 1  # the network is small; more threads cost more synchronisation than they compute


class Pipeline:
    """Tracks people and estimates their 2D and 3D pose. Networks are loaded once; ids restart with every `run`.

    Attributes:
        config: Configuration with `auto` replaced for detector and lifter.
        stand_in: Why a fallback detector is used; None otherwise.
        device: Device of the networks.
        times: Seconds spent in each stage so far.
        fits: What fits to the 2D have changed so far.
        live: Whether it streams.
        turn: Lock held while the 2D networks process a frame, so that sessions in several threads can share them.
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
            config: Configuration; None uses the defaults of `PipelineConfig`.
            intrinsics: (3, 3) px of the camera; None assumes a field of view.
            live: Return every frame at once, or `config.lookahead` frames later, with a streaming lifter. Networks are
                run once now, so that the first frames are not delayed.
            lazy: Load a network at its first use, for runs whose results may be cached.
            detector: A custom person detector, which replaces `config.detector`.

        Raises:
            PoseError: If a weight or the device is not available, or the lifter cannot stream; if lazy, when the
                network is loaded.
        """
        config = config or PipelineConfig()
        self._own_detector = detector
        if detector is not None:  # the configuration names the detector without weights instead
            config = replace(config, detector="full-frame", detector_model=None, detection_score=None)
        config = choose_networks(config, live=live)
        self.config, self.stand_in = choose_detector(config)
        self._intrinsics = intrinsics
        self.times = StageTimes()
        self.fits = FitLog()
        self.turn = threading.Lock()
        self.device = resolve_device(config.device)
        self.live = live
        if not lazy:
            self._load()
        if live:
            warm_up_lifter(self.lifter_stage(self.camera((256, 256))), len(self.skeleton))

    def again(self) -> "Pipeline | None":
        """The same pipeline for another thread; None with a custom detector, which may not serve two threads."""
        return None if self._own_detector else Pipeline(self.config, intrinsics=self._intrinsics, lazy=True)

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
        """Make the pipeline of a preset in `configs/`, with some fields of its `PipelineConfig` changed."""
        return cls(load_preset(name, **changes), intrinsics=intrinsics, live=live, detector=detector)

    def _load(self) -> tuple[object, ...]:
        """All networks, loaded if necessary."""
        return self._lifter, self._found_by, self._hand_networks, self._face_network

    @cached_property
    def _lifter(self) -> "Lifter":
        from pose.lifter.load import load_lifter

        config = self.config
        lifter = load_lifter(config.lifter, self.device)
        if not lifter.streaming and (self.live or config.lookahead):
            key = "lifter" if self.live else "lookahead"
            raise UsageError(f"{key}: {config.lifter} processes whole windows and cannot stream; use lifter sliding")
        seed_torch(config.seed)
        return lifter

    @cached_property
    def _found_by(self) -> tuple[Skeleton, Callable[[], PeopleStage]]:
        stages = people_stages(self.config, self.times, self._own_detector, warm=self.live)
        seed_torch(self.config.seed)
        return stages

    @cached_property
    def _hand_networks(self) -> tuple[HandNetwork, PalmDetector] | None:
        if not self.config.hands:
            return None
        return HandNetwork(threads=self.config.threads), PalmDetector(threads=self.config.threads)

    def hand_tracker(self) -> HandTracker | None:
        """Make the hand tracker of one stream; None if hands are not configured."""
        return None if self._hand_networks is None else HandTracker(*self._hand_networks, self.skeleton)

    @cached_property
    def _face_network(self) -> FaceNetwork | None:
        return FaceNetwork(threads=self.config.threads) if self.config.face else None

    def face_tracker(self) -> FaceTracker | None:
        """Make the face tracker of one stream; None if faces are not configured."""
        return None if self._face_network is None else FaceTracker(self._face_network, self.skeleton)

    @cached_property
    def skeleton(self) -> Skeleton:
        """Skeleton of the 2D keypoints."""
        if "_found_by" not in self.__dict__ and (name := usual_skeleton(self.config)) is not None:
            return get_skeleton(name)
        return self._found_by[0]

    def people_stage(self) -> PeopleStage:
        """Make a stage that detects and tracks people; it starts without tracks."""
        return self._found_by[1]()

    @property
    def models(self) -> tuple[ModelInfo, ...]:
        """The networks of the pipeline with the hashes of their weights."""
        known = tuple(ModelInfo(role, name, sha256_of(file)) for role, name, file in model_files(self.config))
        if self.config.hands:
            known += tuple(ModelInfo("hands", name, sha256_of(locate(name))) for name in HAND_WEIGHTS)
        if self.config.face:
            known += (ModelInfo("face", FACE_WEIGHT, sha256_of(locate(FACE_WEIGHT))),)
        return (*known, ModelInfo("lifter", self.config.lifter, sha256_of(checkpoint_path(self.config.lifter))))

    def camera(self, image_size: tuple[int, int], focal_35mm: float | None = None) -> Camera:
        """The camera to whose axes 3D results refer.

        Args:
            image_size: (width, height) px.
            focal_35mm: 35 mm equivalent focal length in mm from the metadata of the file; ignored if the pipeline has
                intrinsics.
        """
        if self._intrinsics is None and focal_35mm is not None:
            return Camera.of(image_size, intrinsics_from_focal(image_size, focal_35mm))
        return Camera.of(image_size, self._intrinsics)

    def run_info(
        self, source: str, fps: float, image_size: tuple[int, int], focal_35mm: float | None = None
    ) -> RunInfo:
        """Metadata of result files for images of (width, height) px. source, fps: as in `RunInfo`."""
        camera, settings = self.camera(image_size, focal_35mm), asdict(self.config)
        if self._own_detector is not None:
            settings["detector"] = self._own_detector.name
        return RunInfo(
            source=source, fps=fps, camera=camera, skeleton=self.skeleton, models=self.models, settings=settings
        )

    def lifter_stage(self, camera: Camera) -> LifterStage:
        """Make the lifter stage of a camera, without any history, with the configured repair and refinement."""
        config = self.config
        if self._lifter.streaming:
            from pose.lifter.refined import FinalAnswers
            from pose.lifter.stream import REFINE, LifterStream, StreamLifter

            stream = LifterStream(self._lifter, self.skeleton, camera, config.lookahead)
            stage = StreamLifter(stream, repair=config.repair, refine=REFINE if stream.refines else 0)
            return FinalAnswers(stage) if stage.refines and not self.live else stage
        from pose.lifter.offline import OfflineLifter

        return OfflineLifter(
            self._lifter, self.skeleton, camera, repair=config.repair, constant_bones=config.constant_bones,
            fit=config.fit, log=self.fits,
        )  # fmt: skip

    def session(self, image_size: tuple[int, int], focal_35mm: float | None = None) -> "Session":
        """Start a stream of images of (width, height) px with its own ids. focal_35mm: see `camera`."""
        return Session(self, image_size, focal_35mm)

    def run(self, source: Source | str | Path, *, stop: threading.Event | None = None) -> Iterator[FrameResult]:
        """Yield the result of every frame, in order, when it is final. Raises PoseError if the source cannot be read.

        Args:
            source: Result or argument of `pose.video.open_source`.
            stop: When set, no further frame is read, and the frames already read are finished.
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
        """Process a whole video and transform its people to world coordinates, as `pose-run` does.

        The arguments are options of `pose-run`, with the same defaults. Returns after the last frame, unlike `run`.

        Args:
            source: Path of a video, a folder or glob of images, a URL, or the result of `pose.video.open_source`.
            world: Estimate gravity and floor, join tracks, fill gaps and smooth; False returns camera coordinates only.
            heights: Body heights in m by id; None stands for all people.
            pitch: Elevation of the camera's view above the horizon in degrees; estimated if neither is given.
            roll: Clockwise rotation of the camera about its view in degrees.
            smooth: Smooth the motion.
            fill_gaps: Fill gaps of up to half a second.
            join_tracks: Join tracks of one person and drop short ones.
            foot_lock: Keep feet in contact with the floor in place.
            start: Process from this second of the video on; for a path.
            end: Stop at this second.

        Returns:
            All people in all frames.

        Raises:
            PoseError: If the source cannot be read.
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
            again = None if opened.info.is_live else opened.replay
            return Result.of(self.run(opened), info, steps if world else None, join=join_tracks, images=again)


class Session:
    """One stream: the state of the tracker and of the lifter. Live and offline drivers both push frames.

    `push` is `track` followed by `lift`; two threads that call one each let them overlap.

    Attributes:
        camera: Camera that the 3D refers to.
    """

    def __init__(self, pipeline: Pipeline, image_size: tuple[int, int], focal_35mm: float | None = None) -> None:
        self._times = pipeline.times
        self._turn = pipeline.turn
        self._incoming = IncomingFrames(image_size)
        self._skeleton = pipeline.skeleton
        self._overlays: dict[tuple[bool, bool], Overlay] = {}
        self._pipeline = pipeline
        self.camera = pipeline.camera(image_size, focal_35mm)

    @cached_property
    def _people(self) -> PeopleStage:
        return self._pipeline.people_stage()

    @cached_property
    def _hands_and_faces(self) -> tuple[HandTracker | None, FaceTracker | None]:
        return self._pipeline.hand_tracker(), self._pipeline.face_tracker()

    @cached_property
    def _lifter(self) -> LifterStage:
        return self._pipeline.lifter_stage(self.camera)

    @cached_property
    def _background(self) -> BackgroundMotion | None:
        if self._pipeline.config.camera == FIXED_CAMERA:
            return None
        return BackgroundMotion(float(self.camera.matrix[0, 0]), self._skeleton, self.camera.known)

    def push(self, frame: Frame) -> list[FrameResult]:
        """Process the next frame; return the frames that are now final, oldest first.

        Raises:
            UsageError: If the image size differs from that of the session, or the time does not increase.
        """
        return self.lift(self.track(frame))

    def track(self, frame: Frame) -> People:
        """Process the next frame in 2D. Raises what `push` raises."""
        self._incoming.check(frame)
        with self._turn, self._times.measure("track"), shared_uploads():
            people = self._people.step(frame.image, frame.index, frame.time)
            hands, faces = self._hands_and_faces
            if hands is not None:
                with self._times.measure("hands"):
                    people = replace(people, hands=hands.step(frame.image, people))
            if faces is not None:
                with self._times.measure("faces"):
                    people = replace(people, faces=faces.step(frame.image, people))
            if self._background is None:
                return people
            with self._times.measure("camera motion"):
                return replace(people, background=self._background.step(frame.image, people))

    def lift(self, people: People) -> list[FrameResult]:
        """Lift the people of the next frame; return the frames that are now final, oldest first."""
        with self._times.measure("lift"), torch_threads(LIFTER_THREADS):
            return self._lifter.push(people)

    @property
    def refines(self) -> bool:
        """Whether `take_refined` returns each frame a second time: live, with a sliding lifter."""
        return isinstance(self._lifter, Refining) and self._lifter.refines

    def take_refined(self) -> list[FrameResult]:
        """Return the frames refined since the last call, oldest first; after `flush`, all remaining ones."""
        return self._lifter.take_refined() if isinstance(self._lifter, Refining) else []

    def draw(
        self, frame: Frame, result: FrameResult, *, inset: bool = False, body: bool = False, bgr: bool = False
    ) -> U8:
        """Return a new (H, W, 3) uint8 image with the people drawn on it. Call it in the order of the frames.

        Args:
            frame, result: The frame and its result.
            inset: Draw the 3D view in a corner of a landscape image, or beside other images, which widens them.
            body: Draw shaded bodies under the skeletons.
            bgr: Return the channel order of OpenCV; else RGB.

        Raises:
            UsageError: If the result belongs to another frame.
        """
        if result.index != frame.index:
            raise UsageError(f"the result is of frame {result.index}, the image is frame {frame.index}")
        if (inset, body) not in self._overlays:
            from pose.bodies import make_overlay

            self._overlays[inset, body] = make_overlay(self.camera, self._skeleton, inset=inset, body=body)
        drawn = self._overlays[inset, body].draw(frame.image, result)
        return np.ascontiguousarray(drawn[:, :, ::-1]) if bgr else drawn

    def flush(self) -> list[FrameResult]:
        """End the stream; return all remaining frames."""
        with self._times.measure("lift"), torch_threads(LIFTER_THREADS):
            return self._lifter.flush()


def _height_text(heights: Mapping[int | None, float]) -> str | None:
    """Format heights for the option --height; None without any."""
    return ",".join(f"{value}" if one is None else f"{one}:{value}" for one, value in heights.items()) or None
