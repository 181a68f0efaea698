"""One stream of frames through the stages of a pipeline."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from pose.config import FIXED_CAMERA, PipelineConfig, is_one_pass, one_pass_model
from pose.errors import UsageError
from pose.lifting.between import BetweenSamples
from pose.lifting.fit.directions import BoneDirections, give_directions
from pose.lifting.sides import GivenSides, give_sides
from pose.networks.estimators.ensemble import Ensemble, FurtherNetworks
from pose.networks.input import shared_uploads
from pose.networks.journal import JournalledDetector, JournalledEstimator, JournalOf
from pose.registry import DETECTORS, ESTIMATORS, ONE_PASS, build
from pose.structures.camera import Camera
from pose.structures.incoming import IncomingFrames
from pose.structures.keypoint_sigma import with_distance
from pose.structures.skeletons import Skeleton
from pose.structures.stages import Detector, LifterStage, PeopleStage, Refining
from pose.structures.types import U8, Frame, FrameResult, People
from pose.tracking.config import TrackingConfig
from pose.tracking.corrections import CorrectedFrames
from pose.tracking.cuts import CutDetector
from pose.tracking.faces.tracker import FaceTracker
from pose.tracking.hands.tracker import HandTracker
from pose.tracking.networks import warm_up_networks, warm_up_one_pass, warm_up_tracker
from pose.tracking.one_pass import OnePassPeople
from pose.tracking.people_tracker import PeopleTracker
from pose.tracking.sampling import SampledTracker, TrackedFrame
from pose.utils.background import FairLock
from pose.utils.device import torch_threads
from pose.utils.progress import StageTimes
from pose.world.camera_motion.measure import BackgroundMotion
from pose.world.scene.lines import SegmentFinder

if TYPE_CHECKING:
    from pose.view.overlay import Overlay

LIFTER_THREADS = 1  # the network is small; more threads cost more synchronisation than they compute


class StageFactory(Protocol):
    """What a session needs of a pipeline."""

    config: PipelineConfig
    times: StageTimes
    network_lock: FairLock
    live: bool

    @property
    def skeleton(self) -> Skeleton:
        """Skeleton of the 2D keypoints."""
        ...

    def camera(self, image_size: tuple[int, int], focal_35mm: float | None = None) -> Camera:
        """Return the camera whose frame is the coordinate frame of 3D results."""
        ...

    def people_stage(self) -> PeopleStage:
        """Make a stage that detects and tracks people."""
        ...

    def hand_tracker(self) -> HandTracker | None:
        """Make the hand tracker of one stream."""
        ...

    def face_tracker(self) -> FaceTracker | None:
        """Make the face tracker of one stream."""
        ...

    def lifter_stage(self, camera: Camera) -> LifterStage:
        """Make a stage that lifts people to 3D."""
        ...


class Session:
    """One stream of frames, with the state of its tracker and lifter.

    `push` calls `track`, then `lift`. To run the two in parallel, call each from a thread of its own.

    Attributes:
        camera: Camera whose frame is the coordinate frame of the 3D poses.
    """

    def __init__(self, pipeline: StageFactory, image_size: tuple[int, int], focal_35mm: float | None = None) -> None:
        self._times = pipeline.times
        self._network_lock = pipeline.network_lock
        self._incoming = IncomingFrames(image_size)
        self._skeleton = pipeline.skeleton
        self._overlays: dict[tuple[bool, bool], Overlay] = {}
        self._cuts = CutDetector()
        self._between = BetweenSamples() if pipeline.config.keypoint_rate and not pipeline.live else None
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

    @cached_property
    def _segments(self) -> SegmentFinder:
        return SegmentFinder(self._skeleton)

    @cached_property
    def _sampled(self) -> SampledTracker | None:
        """Tracker that samples the frames; None if it processes every frame."""
        people, rate = self._people, self._pipeline.config.keypoint_rate
        if self._pipeline.live or not rate or not isinstance(people, PeopleTracker):
            return None
        return SampledTracker(people, rate)

    @property
    def _further(self) -> FurtherNetworks | None:
        """Networks that improve the keypoints of samples."""
        return self._people.further if isinstance(self._people, PeopleTracker) else None

    @cached_property
    def _corrected(self) -> CorrectedFrames | None:
        if self._further is None:
            return None
        return CorrectedFrames(self._further, self._pipeline.config.ensemble_rate, self._times)

    def push(self, frame: Frame) -> list[FrameResult]:
        """Process the next frame; return the frames that are now final, oldest first.

        Raises:
            UsageError: If the image size differs from that of the session, or the time does not increase.
        """
        return [result for one in self.tracked(frame) for result in self._filled(self.with_background(one))]

    def _filled(self, people: People) -> list[FrameResult]:
        lifted = self.lift(people)
        return lifted if self._between is None else [one for each in lifted for one in self._between.push(each)]

    def finished(self, observed: Iterable[People]) -> Iterator[FrameResult]:
        """Lift the last frames of the stream, given with their background, and yield all that are not final yet."""
        for people in observed:
            yield from self._filled(people)
        last = self.lift_end()
        if self._between is None:
            yield from last
            return
        for result in last:
            yield from self._between.push(result)
        yield from self._between.flush()

    def with_cut(self, frame: Frame) -> tuple[Frame, bool | None]:
        """Return the next frame, and whether it begins another scene; None where `tracked` finds this out.

        Call it with every frame, in order; it may run in another thread.
        """
        return frame, None if self._between is None else self._cuts.is_cut(frame.image)

    def tracked(self, frame: Frame | None, *, cut: bool | None = None) -> list[TrackedFrame]:
        """Detect and track people at the configured rate; return the frames that are final in 2D, oldest first.

        Offline, frames between samples are not complete (`People.sampled`) before `pose.lifting.between` fills them.
        `with_background` adds the background, and may run in another thread.

        Args:
            frame: The next frame; None at the end of the stream.
            cut: Whether it begins another scene; None if it is not known.

        Raises:
            UsageError: If the image size differs from that of the session, or the time does not increase.
        """
        sampled = self._sampled
        if sampled is None:
            return [] if frame is None else [self._tracked(frame)]
        if frame is not None:
            self._incoming.check(frame)
        with self._network_lock, self._times.measure("track"), shared_uploads():
            frames = sampled.flush() if frame is None else sampled.push(frame, cut=cut)
            if self._corrected is not None:
                frames = [one for each in frames for one in self._corrected.push(each)]
                frames += self._corrected.flush() if frame is None else []
            return [self._completed(each) for each in frames]

    def _completed(self, observed: TrackedFrame) -> TrackedFrame:
        """Add hands and faces to the people of a frame."""
        image, people = observed.image, observed.people
        if image is None or not (len(people) or people.sampled):
            return observed
        return replace(observed, people=self._with_hands_and_faces(image, people))

    def _with_hands_and_faces(self, image: U8, people: People) -> People:
        hands, faces = self._hands_and_faces
        if hands is not None:
            with self._times.measure("hands"):
                people = replace(people, hands=hands.step(image, people))
        if faces is not None:
            with self._times.measure("faces"):
                people = replace(people, faces=faces.step(image, people))
        return people

    def with_background(self, observed: TrackedFrame) -> People:
        """Return the people of a frame with its background, which leaves out the people that are expected there."""
        image, people, expected = observed.image, observed.people, observed.expected
        if image is None:
            return people
        background = None
        with self._times.measure("camera motion"):
            if self._background is not None:
                background = self._background.step(image, expected)
            segments = self._segments.step(image, expected, background)
        return replace(people, background=background, segments=segments)

    def track(self, frame: Frame) -> People:
        """Detect and track the people of the next frame in 2D.

        Raises:
            UsageError: If the image size differs from that of the session, or the time does not increase.
        """
        return self.with_background(self._tracked(frame))

    def _tracked(self, frame: Frame) -> TrackedFrame:
        self._incoming.check(frame)
        with self._network_lock, self._times.measure("track"), shared_uploads():
            people = self._people.step(frame.image, frame.index, frame.time)
            further = self._further
            if further is not None:
                found = further.improved(frame.image, people.keypoints, people.scores)
                sigma = with_distance(people.keypoint_sigma, found.distance)
                people = replace(people, keypoints=found.xy, scores=found.scores, keypoint_sigma=sigma)
            people = self._with_hands_and_faces(frame.image, people)
            return TrackedFrame(frame.image, people, people)

    def lift(self, people: People) -> list[FrameResult]:
        """Lift the people of the next frame; return the frames that are now final, oldest first."""
        with self._times.measure("lift"), torch_threads(LIFTER_THREADS):
            return self._lifter.push(people)

    def take_sides(self, sides: Sequence[GivenSides]) -> None:
        """Set the sides of limbs that a user gives, before the first frame is lifted.

        Raises:
            UsageError: If the lifter streams.
        """
        give_sides(self._lifter, sides)

    def take_directions(self, directions: Mapping[int, BoneDirections]) -> None:
        """Set the directions of bones that sensors measure, by track id, before the first frame is lifted.

        Raises:
            UsageError: If the lifter streams, or the fit to the 2D is off.
        """
        give_directions(self._lifter, directions)

    @property
    def refines(self) -> bool:
        """Whether `take_refined` returns each frame a second time, as a live session with a sliding lifter does."""
        return isinstance(self._lifter, Refining) and self._lifter.refines

    def take_refined(self) -> list[FrameResult]:
        """Return the frames refined since the last call, oldest first; after `flush`, all remaining ones."""
        return self._lifter.take_refined() if isinstance(self._lifter, Refining) else []

    def draw(
        self, frame: Frame, result: FrameResult, *, inset: bool = False, body: bool = False, bgr: bool = False
    ) -> U8:
        """Return a new (H, W, 3) uint8 image with the people drawn on it. Call it in the order of the frames.

        Args:
            frame: Frame with the image.
            result: Result of the same frame.
            inset: Whether to draw the 3D view: in a corner of a landscape image, else beside the image, which becomes
                wider.
            body: Whether to draw shaded bodies under the skeletons.
            bgr: Whether to return the channel order of OpenCV instead of RGB.

        Raises:
            UsageError: If the result belongs to another frame.
        """
        if result.index != frame.index:
            raise UsageError(f"the result is of frame {result.index}, the image is frame {frame.index}")
        if (inset, body) not in self._overlays:
            from pose.view.mesh_overlay import make_overlay

            self._overlays[inset, body] = make_overlay(self.camera, self._skeleton, inset=inset, body=body)
        drawn = self._overlays[inset, body].draw(frame.image, result)
        return np.ascontiguousarray(drawn[:, :, ::-1]) if bgr else drawn

    def flush(self) -> list[FrameResult]:
        """End the stream; return all remaining frames, oldest first."""
        return list(self.finished(map(self.with_background, self.tracked(None))))

    def lift_end(self) -> list[FrameResult]:
        """End the 3D of the stream; return the remaining frames, oldest first."""
        with self._times.measure("lift"), torch_threads(LIFTER_THREADS):
            return self._lifter.flush()


def people_stages(
    config: PipelineConfig,
    times: StageTimes,
    detector: Detector | None = None,
    *,
    live: bool = False,
    journal: JournalOf = lambda: None,
) -> tuple[Skeleton, Callable[[], PeopleStage]]:
    """Load the networks, and return the 2D skeleton and a factory of stages that share them."""
    options = config.stage_options
    tracking = TrackingConfig(
        tracker=config.tracker, max_people=config.max_people, detection_interval_s=config.detect_every
    )
    if live:
        warm_up_tracker(config.tracker)
    if is_one_pass(config):
        network = build(ONE_PASS, config.detector, options, *one_pass_model(config))
        if live:
            warm_up_one_pass(network)
        return network.skeleton, partial(OnePassPeople, network, tracking, times=times)
    if detector is None:
        detector = build(DETECTORS, config.detector, options, config.detector_model, "detector_model")
    estimator = build(ESTIMATORS, config.estimator, options, config.estimator_model, "estimator_model")
    others = [build(ESTIMATORS, name, options, None, "ensemble") for name in config.further_estimators]
    if not live:
        detector, estimator = JournalledDetector(detector, journal), JournalledEstimator(estimator, journal)
        others = [JournalledEstimator(other, journal) for other in others]
    further = None
    if others and not live:
        further, others = FurtherNetworks(estimator.skeleton, others, mirror=config.mirrored_crops), []
    if others or config.mirrored_crops:
        estimator = Ensemble([estimator, *others], mirror=config.mirrored_crops)
    if live:
        warm_up_networks(detector, estimator)
    presence = ESTIMATORS[config.estimator].presence if config.presence_score is None else config.presence_score
    tracking = replace(tracking, min_presence=presence)
    return estimator.skeleton, partial(PeopleTracker, detector, estimator, tracking, times=times, further=further)
