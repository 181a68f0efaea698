"""The pipeline: runs all stages in order, for files and live sources."""

import math
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from copy import copy
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from pose.config import (
    FIXED_CAMERA,
    PipelineChanges,
    PipelineConfig,
    PresetName,
    WorldConfig,
    choose_available,
    choose_networks,
    default_skeleton,
    load_preset,
    model_files,
    with_threads,
)
from pose.errors import PoseWarning, UsageError
from pose.lifting.fit.windows import FitLog
from pose.lifting.predict import checkpoint_path
from pose.lifting.straight import StraightLifter
from pose.networks.faces import WEIGHT as FACE_WEIGHT
from pose.networks.faces import FaceNetwork
from pose.networks.hands import WEIGHTS as HAND_WEIGHTS
from pose.networks.hands import HandNetwork, PalmDetector
from pose.networks.journal import Journal
from pose.networks.weights import locate, sha256_of
from pose.results import ModelInfo, RunInfo
from pose.results.cache import open_cache
from pose.session import Session, people_stages
from pose.structures.camera import Camera, check_intrinsics, intrinsics_from_focal
from pose.structures.skeletons import Skeleton, get_skeleton
from pose.structures.stages import Detector, LifterStage, PeopleStage
from pose.structures.types import Frame, FrameResult, People
from pose.tracking.faces.tracker import FaceTracker
from pose.tracking.hands.tracker import HandTracker
from pose.tracking.networks import warm_up_lifter
from pose.tracking.sampling import TrackedFrame
from pose.utils.background import FairLock, ahead, prefetch
from pose.utils.device import resolve_device, seed_torch
from pose.utils.options import default_of
from pose.utils.progress import StageTimes
from pose.utils.resources import available_cores
from pose.utils.shown import shown
from pose.video import Source, open_source

if TYPE_CHECKING:
    from pose.export.result import Result
    from pose.lifting.predict import Lifter
    from pose.results.edits import Edit

MAX_REFINED_PIXELS = 4096 * 2304  # of live images: ten wait for their refined poses, 1 GB at 8K


class Pipeline:
    """Pipeline that tracks people and estimates their 2D and 3D pose. Track ids restart with every `run`.

    Attributes:
        config: Configuration in which `auto` is replaced by the chosen networks.
        fallback_reason: Reason why fallback networks are used; None if the preferred ones are used.
        device: Device that runs the networks.
        times: Seconds spent in each stage so far.
        fits: Statistics of the changes that fits to the 2D keypoints have made so far.
        journal: What the networks found in an earlier part of an offline run, which continues; None if there is none.
        live: Whether the pipeline streams, that is, returns frames with bounded delay.
        network_lock: Lock held while the 2D networks process a frame. Sessions in several threads share the networks.
    """

    def __init__(
        self,
        config: PipelineConfig | None = None,
        *,
        intrinsics: NDArray[np.float64] | Camera | None = None,
        live: bool = False,
        lazy: bool = False,
        detector: Detector | None = None,
    ) -> None:
        """Load the networks.

        Args:
            config: Configuration; None uses the defaults of `PipelineConfig`.
            intrinsics: (3, 3) camera matrix in px, or a camera with its lens; None uses the video's metadata, or a
                field of view of 55 degrees.
            live: Whether to return every frame at once, or `config.lookahead` frames later, with a streaming lifter.
                Every network is then run once here, so that the first frames are not delayed.
            lazy: Whether to load each network at its first use, for runs whose results may be cached.
            detector: A custom person detector, which replaces `config.detector`.

        Raises:
            PoseError: If a weight file or the device is not available, or if a live or lookahead pipeline has a lifter
                that cannot stream. A lazy pipeline raises this when it loads the network.
        """
        if not isinstance(detector, Detector | None):
            raise UsageError(f"detector: expected the name of a detector or a Detector, got {shown(detector)}")
        config = config or PipelineConfig()
        self._own_detector = detector
        if detector is not None:  # instead of the configured detector, a name that needs no weights
            config = replace(config, detector="full-frame", detector_model=None, detection_score=None)
        config = choose_networks(config, live=live)
        self.config, self.fallback_reason = choose_available(config, live=live)
        self._intrinsics = None if intrinsics is None else _checked_intrinsics(intrinsics)
        self.times = StageTimes()
        self.fits = FitLog()
        self.network_lock = FairLock()
        self.journal: Journal | None = None
        self.device = resolve_device(config.device)
        self.live = live
        if not lazy:
            self._load()
        if live:
            warm_up_lifter(self.lifter_stage(Camera.of((256, 256))), len(self.skeleton))

    @property
    def intrinsics(self) -> NDArray[np.float64] | Camera | None:
        """Camera matrix (3, 3) in px or camera that was given; None without."""
        return self._intrinsics

    def copy_for_thread(self) -> "Pipeline | None":
        """Return a copy for another thread; None with a custom detector, which may not be thread-safe."""
        return None if self._own_detector else Pipeline(self.config, intrinsics=self._intrinsics, lazy=True)

    def for_cameras(self, count: int) -> "list[Pipeline]":
        """Return a pipeline for each of `count` static cameras of a live loop.

        On a CPU there are as many sets of networks as cores, which run in parallel; further cameras, and all with a
        custom detector, share sets and take turns.
        """
        first = copy(self)
        first.config = replace(self.config, camera=FIXED_CAMERA)
        sets = min(count, available_cores()) if self.device == "cpu" and self._own_detector is None else 1
        config = with_threads(first.config, sets)
        own = [first] if config == first.config else []
        own += [
            Pipeline(config, intrinsics=self._intrinsics, live=self.live, lazy=not self.live)
            for _ in range(sets - len(own))
        ]
        return [own[index % sets] for index in range(count)]

    @classmethod
    def from_preset(
        cls,
        name: PresetName,
        *,
        intrinsics: NDArray[np.float64] | Camera | None = None,
        live: bool = False,
        detector: Detector | str | None = None,
        **changes: Unpack[PipelineChanges],
    ) -> Self:
        """Make the pipeline of a preset.

        Args:
            name: Name of a preset in `configs/`, such as 'fast'.
            intrinsics: (3, 3) camera matrix in px; see `Pipeline`.
            live: Whether to stream; see `Pipeline`.
            detector: A custom person detector, or the name of one; it replaces that of the preset.
            **changes: Values for fields of `PipelineConfig`, which replace those of the preset.

        Raises:
            UsageError: For an unknown preset, key or value.
            PoseError: If a weight file or the device is not available.
        """
        named, own = ({"detector": detector}, None) if isinstance(detector, str) else ({}, detector)
        return cls(load_preset(name, **changes, **named), intrinsics=intrinsics, live=live, detector=own)

    def _load(self) -> tuple[object, ...]:
        """Return all networks; load those that are not loaded yet."""
        return self._lifter, self._found_by, self._hand_networks, self._face_network

    @cached_property
    def _lifter(self) -> "Lifter":
        from pose.lifting.load import load_lifter

        config = self.config
        lifter = load_lifter(config.lifter, self.device)
        if not lifter.streaming and (self.live or config.lookahead):
            key = "lifter" if self.live else "lookahead"
            raise UsageError(f"{key}: {config.lifter} processes whole windows and cannot stream; use lifter sliding")
        if config.steady and (not self.live or config.lookahead or not lifter.averages_mirrored):
            raise UsageError("steady: smooths the newest poses of live runs with --lifter sliding and no --lookahead")
        seed_torch(config.seed)
        return lifter

    @cached_property
    def _found_by(self) -> tuple[Skeleton, Callable[[], PeopleStage]]:
        stages = people_stages(
            self.config, self.times, self._own_detector, live=self.live, journal=lambda: self.journal
        )
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
        if "_found_by" not in self.__dict__ and (name := default_skeleton(self.config)) is not None:
            return get_skeleton(name)
        return self._found_by[0]

    def people_stage(self) -> PeopleStage:
        """Make a stage that detects and tracks people; it starts without tracks."""
        return self._found_by[1]()

    @property
    def models(self) -> tuple[ModelInfo, ...]:
        """Networks of the pipeline, with the hashes of their weights."""
        known = tuple(ModelInfo(role, name, sha256_of(file)) for role, name, file in model_files(self.config))
        if self.config.hands:
            known += tuple(ModelInfo("hands", name, sha256_of(locate(name))) for name in HAND_WEIGHTS)
        if self.config.face:
            known += (ModelInfo("face", FACE_WEIGHT, sha256_of(locate(FACE_WEIGHT))),)
        return (*known, ModelInfo("lifter", self.config.lifter, sha256_of(checkpoint_path(self.config.lifter))))

    def camera(self, image_size: tuple[int, int], focal_35mm: float | None = None) -> Camera:
        """Return the camera whose frame is the coordinate frame of 3D results.

        Args:
            image_size: (width, height) px.
            focal_35mm: 35 mm equivalent focal length in mm from the metadata of the file; ignored if the pipeline has
                intrinsics.
        """
        if self._intrinsics is not None:
            return Camera.of(image_size, _checked_intrinsics(self._intrinsics, image_size))
        return Camera.of(image_size, None if focal_35mm is None else intrinsics_from_focal(image_size, focal_35mm))

    def run_info(
        self, source: str, fps: float, image_size: tuple[int, int], focal_35mm: float | None = None
    ) -> RunInfo:
        """Return the metadata for result files.

        Args:
            source: File name or address of the video.
            fps: Average frames per second of the source.
            image_size: (width, height) px.
            focal_35mm: 35 mm equivalent focal length in mm; see `camera`.
        """
        camera, settings = self.camera(image_size, focal_35mm), asdict(self.config)
        if self._own_detector is not None:
            settings["detector"] = self._own_detector.name
        return RunInfo(
            source=source, fps=fps, camera=camera, skeleton=self.skeleton, models=self.models, settings=settings
        )

    def lifter_stage(self, camera: Camera) -> LifterStage:
        """Make a stage that lifts the people of one stream of images of `camera` to 3D, as configured."""
        if camera.distorted:
            return StraightLifter(self.lifter_stage(camera.straight), camera)
        config = self.config
        if self._lifter.streaming:
            from pose.lifting.pending import FinalResults
            from pose.lifting.stream import REFINE_DELAY_FRAMES, LifterStream, StreamLifter

            stream = LifterStream(self._lifter, self.skeleton, camera, config.lookahead)
            # A live loop keeps the images of frames that are still refined.
            refines = stream.refines and not (self.live and math.prod(camera.size) > MAX_REFINED_PIXELS)
            refine = REFINE_DELAY_FRAMES if refines else 0
            stage = StreamLifter(stream, repair=config.repair, refine=refine, steady=config.steady and self.live)
            return FinalResults(stage) if stage.refines and not self.live else stage
        from pose.lifting.offline import OfflineLifter

        return OfflineLifter(
            self._lifter, self.skeleton, camera, repair=config.repair, constant_bones=config.constant_bones,
            fit=config.fit, log=self.fits,
        )  # fmt: skip

    def session(self, image_size: tuple[int, int], focal_35mm: float | None = None) -> Session:
        """Start a stream of images of one size, (width, height) px, with its own track ids; see `camera`."""
        return Session(self, image_size, focal_35mm)

    def run(self, source: Source | str | Path, *, stop: threading.Event | None = None) -> Iterator[FrameResult]:
        """Yield the result of every frame, in order, as soon as the result is final.

        Args:
            source: An open source, or the path or address that `pose.video.open_source` accepts.
            stop: Event that ends the run: once set, no further frame is read, and frames already read are finished.

        Raises:
            PoseError: If the source cannot be read.
        """
        if not isinstance(source, Source):
            with open_source(source) as opened:
                yield from self.run(opened, stop=stop)
            return
        session = self.session(source.info.size, source.info.focal_35mm)
        frames = prefetch(map(session.with_cut, source), self.times, stop or threading.Event())
        tracked = ahead(_tracked(session, frames), "track", count=2)  # each has an image
        with closing(ahead(_with_background(session, tracked), "background")) as people:
            yield from session.finished(people)

    def process(
        self,
        source: Source | str | Path,
        *,
        world: bool = default_of(WorldConfig, "world"),
        heights: Mapping[int | None, float] | None = None,
        pitch: float | None = None,
        roll: float | None = None,
        smooth: bool = default_of(WorldConfig, "smooth"),
        fill_gaps: bool = default_of(WorldConfig, "fill_gaps"),
        join_tracks: bool = default_of(WorldConfig, "join_tracks"),
        foot_lock: bool = default_of(WorldConfig, "foot_lock"),
        cutoff: float | None = default_of(WorldConfig, "cutoff"),
        start: float = 0.0,
        end: float = math.inf,
        cache: str | Path | None = None,
        edits: "Path | str | Sequence[Edit] | None" = None,
        depth: "Path | str | None" = None,
        depth_offset: float = 0.0,
        imu: "Path | str | None" = None,
        imu_offset: float | None = None,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> "Result":
        """Process a whole video and transform its people to world coordinates, as `pose-run` does.

        The arguments are options of `pose-run`, with the same defaults.

        Args:
            source: Path of a video, a folder or glob of images, a URL, or the result of `pose.video.open_source`.
            world: Whether to estimate gravity and floor. False gives camera coordinates and ignores the next 8 options.
            heights: Body heights in m by id; the key None stands for all people.
            pitch: Elevation of the camera's optical axis above the horizon in degrees. Pitch and roll are estimated
                if neither is given; if only one is given, the other is 0.
            roll: Clockwise rotation of the camera about its optical axis in degrees.
            smooth: Whether to smooth the motion.
            fill_gaps: Whether to fill gaps of up to half a second.
            join_tracks: Whether to join tracks of the same person and drop short ones.
            foot_lock: Whether to keep feet in place while they touch the floor.
            cutoff: Cut-off frequency of the smoothing in Hz; None determines it by residual analysis.
            start: Start of the part to process, in s from the first frame; ignored for an open source.
            end: End of the part to process, in s from the first frame; ignored for an open source.
            cache: Folder of 2D and 3D results that another run of the same video reuses; None computes everything.
            edits: Corrections, or the path of their file (docs/reference/edits.md). With a cache, only 3D and world are
                computed again.
            depth: Depth images of the video (docs/guides/sensors.md), which also set the intrinsics unless the pipeline
                has some; not with edits.
            depth_offset: Time of the video in s at which the depth images begin.
            imu: Recording of inertial sensors that one person wears (docs/guides/sensors.md); not with edits.
            imu_offset: Time of the video in s at which the time of the sensors is 0; None finds it.
            progress: Function that is called after each frame, with the number of frames so far, and of all frames if
                it is known.

        Returns:
            All people in all frames.

        Raises:
            UsageError: For an argument out of range.
            PoseError: If the source cannot be read.
        """
        from pose.body.imu import find_worn, read_imus
        from pose.export.result import Result
        from pose.results.edits import given_edits
        from pose.results.run import counted, record_video
        from pose.video.depth import open_depth
        from pose.world.clean import Steps
        from pose.world.given import checked, height_text

        if not (progress is None or callable(progress)):
            raise UsageError(f"progress: expected a function, got {shown(progress)}")
        up = checked(heights, pitch, roll)
        WorldConfig(smooth=smooth, cutoff=cutoff)  # checks them
        corrections = given_edits(edits)
        for name, given in (("depth", depth), ("imu", imu)):
            if given is not None and (corrections or not world):
                raise UsageError(f"{name}: not with edits, and not without world coordinates")
        images = None if depth is None else open_depth(Path(depth), depth_offset)
        runner = self
        if images is not None and images.colour_camera is not None and self._intrinsics is None:
            runner = copy(self)
            runner._intrinsics = images.colour_camera
        steps = Steps(fill=fill_gaps, smooth=smooth, feet=foot_lock, up=up, heights=heights or {}, cutoff_hz=cutoff)
        options = {
            "world": world, "pitch": pitch, "roll": roll, "height": height_text(heights or {}), "smooth": smooth,
            "fill_gaps": fill_gaps, "join_tracks": join_tracks, "cutoff": cutoff, "foot_lock": foot_lock,
        }  # fmt: skip
        with ExitStack() as stack:
            opened = source if isinstance(source, Source) else open_source(source, start=start, end=end)
            if opened is not source:
                stack.enter_context(opened)
            known = None if cache is None else stack.enter_context(open_cache(str(cache)))
            run = record_video(
                runner, opened, steps if world else None, join=join_tracks, span=(start, end), settings=options,
                cache=known, progress=counted(progress), images=not opened.info.is_live,
                edits=corrections,
                depth=images,
                sensors=None if imu is None else find_worn(read_imus(Path(imu)), imu_offset),
            )  # fmt: skip
            if run.cut_short is not None:
                warnings.warn(f"{run.cut_short}; the result has the frames before", PoseWarning, stacklevel=2)
            for problem in run.problems:
                warnings.warn(problem, PoseWarning, stacklevel=2)
            return Result.of(stack.enter_context(run))


def _tracked(session: Session, frames: Generator[tuple[Frame, bool | None], None, None]) -> Iterator[TrackedFrame]:
    with closing(frames):
        for frame, cut in frames:
            yield from session.tracked(frame, cut=cut)
    yield from session.tracked(None)


def _with_background(session: Session, tracked: Generator[TrackedFrame, None, None]) -> Iterator[People]:
    with closing(tracked):
        yield from map(session.with_background, tracked)


def _checked_intrinsics(
    intrinsics: NDArray[np.float64] | Camera, size: tuple[int, int] | None = None
) -> NDArray[np.float64] | Camera:
    if isinstance(intrinsics, Camera):
        intrinsics = intrinsics if size is None else intrinsics.resized(size)
        _checked_intrinsics(intrinsics.matrix, intrinsics.size)
        return intrinsics
    try:
        matrix = np.asarray(intrinsics, np.float64)
        check_intrinsics(matrix, size)
    except (TypeError, ValueError) as error:
        text = str(error)
        raise UsageError(text if text.startswith("intrinsics") else "intrinsics: expected (3, 3) numbers") from error
    return matrix
