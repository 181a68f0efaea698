"""The live loop: capture, 2D and 3D overlap in three threads; frames are dropped to bound the latency.

source --(mailbox, drops its oldest)--> 2D people --(bounded queue)--> 3D --(a mailbox each)--> subscribers
"""

import math
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Self

from pose.camera_motion.watch import CameraWatch
from pose.config import AUTO_CAMERA, FIXED_CAMERA, LiveConfig
from pose.live.ahead import PosePredictor, usual_forecaster
from pose.live.base import Loop, Subscription
from pose.live.camera import WatchedWorld
from pose.live.counter import RepetitionCounter
from pose.live.horizon import Horizon
from pose.live.mailbox import Mailbox
from pose.live.refinement import RefinedFrames
from pose.live.result import LiveResult, LiveStatus, Stream
from pose.live.sources import Captured, LiveSource, Reconnecting
from pose.pipeline import Pipeline, Session
from pose.types import FrameResult, People
from pose.world.clean import Steps

BACKLOG = 4  # frames that may wait for the 2D networks; more would add latency on a slow machine
LIFTER_BACKLOG = 2
DEFAULTS = LiveConfig()
JOIN_SECONDS = 15.0
CAMERA_SECONDS = 0.5  # a capture thread that blocks on a dead camera is a daemon, and not waited for longer


@dataclass(frozen=True, slots=True)
class _Tracked:
    """A frame on its way from the 2D thread to the 3D thread."""

    stream: Stream
    captured: Captured
    people: People


class LiveLoop(Loop):
    """Runs a source through a pipeline until the source ends or the loop is stopped. Use it as a context manager.

    Several loops may share one pipeline: their frames take turns.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        source: LiveSource,
        config: LiveConfig = DEFAULTS,
        *,
        backlog: int = BACKLOG,
        world: Steps | None = None,
    ) -> None:
        """
        Args:
            pipeline: Pipeline constructed with `live=True`.
            source: Source of the frames.
            config: Settings of prediction.
            backlog: Number of frames that may wait for the networks before the oldest is dropped.
            world: Steps of the world; None keeps camera coordinates.

        Raises:
            UsageError: If poses are to be predicted by a pipeline with look-ahead.
        """
        super().__init__()
        self.source: LiveSource = source
        self.config = config
        self.ahead = Horizon.read(config.ahead, pipeline.config.lookahead)
        self._steps = world
        if self.ahead is not None or config.bridge:
            usual_forecaster()  # loaded before the first frame
        self._pipeline = pipeline
        self._waiting: Mailbox[Captured] = Mailbox(backlog)
        self._tracked: queue.Queue[_Tracked | None] = queue.Queue(LIFTER_BACKLOG)
        self._predict: PosePredictor | None = None  # of the current stream
        self._in_flight: deque[Captured] = deque()  # frames whose 3D is pending
        self._stopping = threading.Event()
        self._paused = threading.Event()
        self._counter = RepetitionCounter()
        self._refined: RefinedFrames | None = None  # of the current stream, if its lifter refines
        self._frames_in = 0
        self._captured_at = math.nan  # when the newest frame was captured
        self._people = 0
        self._ahead_seconds = 0.0
        self._words = ""  # state of the world
        self._newest_id, self._ids_before = 0, 0  # the greatest so far, and that of earlier streams
        self._threads = [
            threading.Thread(target=self._guarded, args=(work, after), name=name, daemon=True)
            for name, work, after in (
                ("capture", self._capture, self._waiting.close),
                ("people", self._find_people, lambda: self._tracked.put(None)),
                ("lift", self._lift, self._end),
            )
        ]

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline that processes the next frame. Assigning another one restarts tracking.

        Raises:
            UsageError: If the new pipeline has look-ahead and poses are to be predicted.
        """
        return self._pipeline

    @pipeline.setter
    def pipeline(self, pipeline: Pipeline) -> None:
        Horizon.read(self.config.ahead, pipeline.config.lookahead)
        self._pipeline = pipeline

    @property
    def left_out(self) -> int:
        """See `Loop.left_out`."""
        return self.source.left_out if isinstance(self.source, Reconnecting) else 0

    @property
    def paused(self) -> bool:
        """Whether frames are discarded."""
        return self._paused.is_set()

    @property
    def running(self) -> bool:
        """Whether the loop was started and has neither ended nor failed."""
        return self._threads[-1].is_alive() and not self._over.is_set()  # the thread ends just after the event

    def start(self) -> Self:
        """See `Loop.start`."""
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> None:
        """See `Loop.stop`."""
        self._stopping.set()
        self._waiting.close()
        self.source.close()
        capture, *others = self._threads
        if capture.ident is None:  # never started
            self._close_subscribers()
        else:
            for thread in others:
                thread.join(JOIN_SECONDS)
            capture.join(CAMERA_SECONDS)
        self._raise_error()

    def close(self) -> None:
        """See `Loop.close`."""
        self.source.close()

    def pause(self, paused: bool = True) -> None:
        """See `Loop.pause`."""
        if paused:
            self._paused.set()
        else:
            self._paused.clear()

    def status(self) -> LiveStatus:
        """See `Loop.status`."""
        with self._lock:
            fps, median, high = self._meter.recent()
            frames_in, processed, people = self._frames_in, self._meter.count, self._people
            dropped = self._waiting.dropped
            world = self._words
        pipeline = self._pipeline
        delay = 1000 * pipeline.config.lookahead / (fps or self.source.fps)
        return LiveStatus(
            fps=fps,
            latency_ms=median,
            latency_p95_ms=high,
            people=people,
            device=pipeline.device,
            lifter=pipeline.config.lifter,
            lifter_delay_ms=delay,
            ahead_ms=1000 * self._ahead_seconds,
            frames_in=frames_in,
            processed=processed,
            dropped=dropped,
            paused=self.paused,
            message=self.source.message,
            world=world,
            frame_age_s=monotonic() - self._captured_at,
        )

    def _capture(self) -> None:
        for captured in self.source.frames(self._stopping):
            if self._stopping.is_set():
                break
            self._captured_at = monotonic()
            if self.paused:
                continue
            with self._lock:  # frames that arrive while the loop stops are neither counted as captured nor as dropped
                self._frames_in += self._waiting.put(captured)

    def _find_people(self) -> None:
        stream: Stream | None = None
        for captured in self._waiting:
            pipeline, size = self._pipeline, captured.frame.size
            if stream is None or stream.pipeline is not pipeline or stream.size != size:
                session = pipeline.session(size)
                stream = Stream(pipeline, session, size, self._world_of(session, size, stream))
            people = stream.session.track(captured.frame)
            self._tracked.put(_Tracked(stream, captured, people))

    def _lift(self) -> None:
        stream: Stream | None = None
        while (tracked := self._tracked.get()) is not None:
            if stream is not None and stream is not tracked.stream:
                self._publish(stream, stream.session.flush())
            if stream is not tracked.stream:
                stream, self._ids_before = tracked.stream, self._newest_id
                self._predict = self._predictor(stream)
                self._refine(stream)
            self._in_flight.append(tracked.captured)
            self._publish(stream, stream.session.lift(tracked.people))
        if stream is not None:
            self._publish(stream, stream.session.flush())

    def _publish(self, stream: Stream, results: list[FrameResult]) -> None:
        for result in results:
            captured = self._in_flight.popleft()
            here, info, words, motion = len(result.people), None, "", ""
            result = self._with_new_ids(result)
            skeleton = stream.pipeline.skeleton
            if stream.world is not None:
                result, info = stream.world.place(result, skeleton)
                words, motion = stream.world.words(info), stream.world.motion
            result = self._where_shown(result, captured.at)
            image, done, final = captured.frame.image, monotonic(), self._refined is None
            counts = self._counter.add(result)
            live = LiveResult(image, result, skeleton, captured.at, done, stream, info, motion, final, counts)
            with self._order, self._lock:
                self._people, self._words = here, words
                number, self._published = self._published, self._published + 1
                subscribers = list(self._subscribers)
                if self._refined is not None:
                    wanted_later = any(one.wanted != "newest" for one in subscribers)
                    self._refined.waiting.append((number, live if wanted_later else live.without_image()))
            for one in subscribers:
                one.give(number, live, refined=False)
            with self._lock:  # counted after all subscribers have it
                self._meter.add(live.done, live.latency)
        if self._refined is not None:
            self._publish_refined(self._refined)

    def _publish_refined(self, frames: RefinedFrames) -> None:
        for result in frames.stream.session.take_refined():
            number, live = frames.refined(self._with_new_ids(result))
            with self._order:
                frames.waiting.popleft()
                with self._lock:
                    subscribers = list(self._subscribers)
                for one in subscribers:
                    one.give(number, live, refined=True)

    def _refine(self, stream: Stream) -> None:
        """Start the refinement of a new stream. The refined world is kept if it is still valid."""
        before = self._refined
        if not stream.session.refines:
            self._refined = None
            return
        if before is not None and before.stream.size == stream.size:
            world = before.world
        else:
            world = self._world_of(stream.session, stream.size, None)
        self._refined = RefinedFrames(stream, world, self.config.bridge)

    def _give_rest(self, leaving: Sequence[Subscription]) -> None:
        """Send the remaining unrefined frames to subscribers of final frames that unsubscribe."""
        waiting = [] if self._refined is None else list(self._refined.waiting)
        for one in leaving:
            for number, live in waiting:
                if one.wanted == "final" and number >= one.since:
                    one.mailbox.put(live)

    def _predictor(self, stream: Stream) -> PosePredictor | None:
        if self.ahead is None and not self.config.bridge:
            return None
        return PosePredictor(stream.pipeline.skeleton, stream.session.camera, bridge=self.config.bridge)

    def _where_shown(self, result: FrameResult, captured: float) -> FrameResult:
        """Predict the people at the time at which the frame is shown."""
        if self._predict is None:
            return result
        seconds = 0.0 if self.ahead is None else self.ahead.of(captured, monotonic())
        self._ahead_seconds = seconds
        return self._predict(result, seconds)

    def _world_of(self, session: Session, size: tuple[int, int], before: Stream | None) -> WatchedWorld | None:
        """Return the world of a new stream: the world of stream `before` if the image size is the same."""
        if self._steps is None:
            return None
        if before is not None and before.world is not None and before.size == size:
            return before.world
        camera = self._pipeline.config.camera
        watch = None if camera == FIXED_CAMERA else CameraWatch(ignore_translation=camera != AUTO_CAMERA)
        return WatchedWorld(session.camera, self._steps, watch)

    def _with_new_ids(self, result: FrameResult) -> FrameResult:
        """Offset the track ids, which start at 1 in every stream, so that they are unique in the loop."""
        ids = result.people.ids
        if not len(ids):
            return result
        if self._ids_before:
            ids = ids + self._ids_before
            result = replace(result, people=replace(result.people, ids=ids))
        self._newest_id = max(self._newest_id, int(ids.max()))
        return result

    def _guarded(self, work: Callable[[], None], after: Callable[[], None]) -> None:
        """Run `work` in the current thread, then `after`. An error ends the loop and is raised in `wait` and `stop`."""
        try:
            work()
        except BaseException as error:
            with self._lock:
                self._error = self._error or error
            self._stopping.set()
            self._waiting.close()
        finally:
            after()

    def _end(self) -> None:
        """Clean up after the loop, in its last thread."""
        while self._threads[1].is_alive():  # it may block on the full queue
            try:
                self._tracked.get(timeout=0.05)
            except queue.Empty:
                continue
        self._close_subscribers()
