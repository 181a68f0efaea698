"""Live loop of one source: capture, 2D and 3D run in three threads, and frames are dropped to bound the latency.

```
source --(mailbox, drops its oldest)--> 2D --(bounded queue)--> 3D --(one mailbox each)--> subscribers
```
"""

import math
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Self

from pose.config import AUTO_CAMERA, FIXED_CAMERA, LiveConfig
from pose.live.ahead import PosePredictor, default_forecaster
from pose.live.base import Loop, Subscription
from pose.live.camera import RefinedWorld, WatchedWorld
from pose.live.counter import RepetitionCounter
from pose.live.horizon import Horizon
from pose.live.mailbox import Mailbox
from pose.live.refinement import RefinedFrames
from pose.live.result import LiveResult, LiveStatus, Stream
from pose.live.sources import Captured, LiveSource, Played, Reconnecting
from pose.live.thinning import Thinning
from pose.pipeline import Pipeline
from pose.session import Session
from pose.structures.types import FrameResult, People
from pose.world.camera_motion.watch import CameraWatch
from pose.world.clean import Steps
from pose.world.measured import DepthImages

BACKLOG = 4  # frames that may wait for the 2D networks; more would add latency on a slow machine
MAX_BACKLOG_BYTES = 1 << 27  # of the images of these frames, of which one always waits
LIFTER_BACKLOG = 2
MIN_STEP = 0.9  # of two frames for the networks, relative to the interval at `LiveLoop.max_fps`
DEFAULTS = LiveConfig()
JOIN_SECONDS = 15.0
CAPTURE_JOIN_SECONDS = 0.5  # maximum wait for the capture thread, which may block on a dead camera


@dataclass(frozen=True, slots=True)
class _Tracked:
    """A frame on its way from the 2D thread to the 3D thread."""

    stream: Stream  # stream of the frame
    captured: Captured  # image and capture time
    people: People  # tracked people of the frame


class LiveLoop(Loop):
    """A live loop that runs a source through a pipeline, until the source ends or the loop is stopped.

    Use it as a context manager. Several loops may share one pipeline, which processes one frame at a time.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        source: LiveSource,
        config: LiveConfig = DEFAULTS,
        *,
        backlog: int = BACKLOG,
        counts: bool = True,
        world: Steps | bool | None = None,
        depth: DepthImages | None = None,
    ) -> None:
        """Create the loop without starting it.

        Args:
            pipeline: Pipeline constructed with `live=True`.
            config: Settings of pose prediction: the prediction time, and how long occluded people are predicted. By
                default, only occluded people are predicted.
            backlog: Maximum number of frames that wait for the networks; above it, the oldest is dropped.
            counts: Whether to count repetitions.
            world: Settings of the world coordinates; True for the defaults, None or False for camera coordinates.
            depth: Depth images at the times of the source's images, which give sizes, distances and the vertical.

        Raises:
            UsageError: If `config` requires prediction, and the pipeline has a look-ahead.
        """
        super().__init__()
        self.source: LiveSource = source
        self.config = config
        self.max_fps = math.inf  # frames/s for the networks, at most; may change while the loop runs
        self.ahead = Horizon.parse(config.ahead, pipeline.config.lookahead)
        self._steps = Steps() if world is True else world or None
        self._depth = depth
        if self.ahead is not None or config.bridge:
            default_forecaster()  # loaded before the first frame
        self._pipeline = pipeline
        self._capture_queue: Mailbox[Captured] = Mailbox(
            backlog, room=lambda captured: MAX_BACKLOG_BYTES // (3 * captured.size[0] * captured.size[1])
        )
        self._tracked: queue.Queue[_Tracked | None] = queue.Queue(LIFTER_BACKLOG)
        self._predict: PosePredictor | None = None  # predictor of the current stream
        self._in_flight: deque[Captured] = deque()  # frames whose 3D is pending
        self._stopping = threading.Event()
        self._paused = threading.Event()
        self._counter = RepetitionCounter() if counts else None
        self._refined: RefinedFrames | None = None  # frames of the current stream; None if its lifter does not refine
        self._frames_in = 0
        self._captured_at = math.nan  # when the newest frame was captured
        self._people = 0
        self._ahead_seconds = 0.0
        self._world_text = ""  # state of gravity and camera motion
        self._max_id, self._id_offset = 0, 0  # greatest track id so far, and greatest of earlier streams
        self._threads = [
            threading.Thread(target=self._run_guarded, args=(work, after), name=name, daemon=True)
            for name, work, after in (
                ("capture", self._capture, self._capture_queue.close),
                ("people", self._find_people, lambda: self._tracked.put(None)),
                ("lift", self._lift, self._end),
            )
        ]

    @property
    def pipeline(self) -> Pipeline:
        """Pipeline that processes the next frame. Assigning another one restarts tracking.

        Raises:
            UsageError: If the new pipeline has a look-ahead, and the loop predicts poses.
        """
        return self._pipeline

    @pipeline.setter
    def pipeline(self, pipeline: Pipeline) -> None:
        Horizon.parse(self.config.ahead, pipeline.config.lookahead)
        self._pipeline = pipeline

    @property
    def left_out(self) -> int:
        """See `Loop.left_out`."""
        return self.source.left_out if isinstance(self.source, Reconnecting) else 0

    @property
    def paused(self) -> bool:
        """See `Loop.paused`."""
        return self._paused.is_set()

    @property
    def running(self) -> bool:
        """See `Loop.running`."""
        return self._threads[-1].is_alive() and not self._finished.is_set()  # the thread ends just after the event

    def start(self) -> Self:
        """See `Loop.start`."""
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> None:
        """See `Loop.stop`."""
        self._stopping.set()
        self._capture_queue.close()
        self.source.close()
        capture, *others = self._threads
        if capture.ident is None:  # never started
            self._close_subscribers()
        else:
            for thread in others:
                thread.join(JOIN_SECONDS)
            capture.join(CAPTURE_JOIN_SECONDS)
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
            dropped = self._capture_queue.dropped
            world = self._world_text
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
        """Queue the images of the source, in the capture thread."""
        thinning, put_at = Thinning(), -math.inf
        for captured in self.source.frames(self._stopping):
            if self._stopping.is_set():
                break
            self._captured_at = monotonic()
            if isinstance(self.source, Played | Reconnecting):
                lag = self._captured_at - captured.at
                self.source.thin(thinning.level(captured.at, lag, self._capture_queue.dropped))
            if self.paused:
                continue
            with self._lock:  # frames that arrive while the loop stops are neither counted as captured nor as dropped
                if captured.at - put_at < MIN_STEP / self.max_fps:
                    self._frames_in, self._capture_queue.dropped = self._frames_in + 1, self._capture_queue.dropped + 1
                elif self._capture_queue.put(captured):
                    self._frames_in, put_at = self._frames_in + 1, captured.at

    def _find_people(self) -> None:
        """Track people in the queued images, in the 2D thread. A new image size or pipeline begins a new stream."""
        stream: Stream | None = None
        for captured in self._capture_queue:
            pipeline, size = self._pipeline, captured.frame.size
            if stream is None or stream.pipeline is not pipeline or stream.size != size:
                session = pipeline.session(size)
                stream = Stream(pipeline, session, size, self._world_of(session, size, stream))
            people = stream.session.track(captured.frame)
            self._tracked.put(_Tracked(stream, captured, people))

    def _lift(self) -> None:
        """Estimate and publish 3D poses of the tracked people, in the 3D thread."""
        stream: Stream | None = None
        while (tracked := self._tracked.get()) is not None:
            if stream is not None and stream is not tracked.stream:
                self._publish(stream, stream.session.flush())
            if stream is not tracked.stream:
                stream, self._id_offset = tracked.stream, self._max_id
                self._predict = self._predictor(stream)
                self._begin_refinement(stream)
            self._in_flight.append(tracked.captured)
            self._publish(stream, stream.session.lift(tracked.people))
        if stream is not None:
            self._publish(stream, stream.session.flush())

    def _publish(self, stream: Stream, results: list[FrameResult]) -> None:
        """Send results to all subscribers, and their refinements where available."""
        for result in results:
            captured = self._in_flight.popleft()
            here, info, scene, world_text, motion = len(result.people), None, None, "", ""
            result = self._with_unique_ids(result)
            skeleton = stream.pipeline.skeleton
            if stream.world is not None:
                result, info = stream.world.place(result, skeleton)
                scene, motion = stream.world.scene, stream.world.motion
                world_text = stream.world.status_text(info)
            result = self._predict_for_display(result, captured.at)
            image, done, final = captured.frame.image, monotonic(), self._refined is None
            counts = {} if self._counter is None else self._counter.add(result)
            live = LiveResult(image, result, skeleton, captured.at, done, stream, info, motion, final, counts)
            with self._delivery_lock, self._lock:
                self._people, self._world_text = here, world_text
                number, self._published = self._published, self._published + 1
                subscribers = list(self._subscribers)
                if self._refined is not None:
                    wanted_later = any(subscriber.wanted != "newest" for subscriber in subscribers)
                    kept = live if wanted_later else live.without_image()
                    self._refined.pending.append((number, kept, scene))
            for subscriber in subscribers:
                subscriber.deliver(number, live, refined=False)
            with self._lock:  # frames count as processed once all subscribers have them
                self._meter.add(live.done, live.latency)
        if self._refined is not None:
            self._publish_refined(self._refined)

    def _publish_refined(self, frames: RefinedFrames) -> None:
        for result in frames.stream.session.take_refined():
            number, live = frames.refined(self._with_unique_ids(result))
            with self._delivery_lock:
                frames.pending.popleft()
                with self._lock:
                    subscribers = list(self._subscribers)
                for subscriber in subscribers:
                    subscriber.deliver(number, live, refined=True)

    def _begin_refinement(self, stream: Stream) -> None:
        """Prepare for the refinement of a new stream; keep refined people's world if the image size is the same."""
        before = self._refined
        if not stream.session.refines:
            self._refined = None
            return
        world = RefinedWorld() if before is None or before.stream.size != stream.size else before.world
        self._refined = RefinedFrames(stream, world, self.config.bridge)

    def _deliver_pending(self, leaving: Sequence[Subscription]) -> None:
        """See `Loop._deliver_pending`."""
        pending = [] if self._refined is None else list(self._refined.pending)
        for one in leaving:
            for number, live, _ in pending:
                if one.wanted == "final" and number >= one.since:
                    one.mailbox.put(live)

    def _predictor(self, stream: Stream) -> PosePredictor | None:
        if self.ahead is None and not self.config.bridge:
            return None
        return PosePredictor(stream.pipeline.skeleton, stream.session.camera, bridge=self.config.bridge)

    def _predict_for_display(self, result: FrameResult, captured: float) -> FrameResult:
        """Predict the people for the time at which the frame, captured at `captured` s, is displayed."""
        if self._predict is None:
            return result
        seconds = 0.0 if self.ahead is None else self.ahead.prediction_time(captured, monotonic())
        self._ahead_seconds = seconds
        return self._predict(result, seconds)

    def _world_of(self, session: Session, size: tuple[int, int], before: Stream | None) -> WatchedWorld | None:
        """Return the world of a new stream: that of the stream before it if the image size is the same."""
        if self._steps is None:
            return None
        if before is not None and before.world is not None and before.size == size:
            return before.world
        camera = self._pipeline.config.camera
        watch = None if camera == FIXED_CAMERA else CameraWatch(ignore_translation=camera != AUTO_CAMERA)
        return WatchedWorld(session.camera, self._steps, watch, self._depth)

    def _with_unique_ids(self, result: FrameResult) -> FrameResult:
        """Make the track ids unique in the loop. They start at 1 in every stream."""
        ids = result.people.ids
        if not len(ids):
            return result
        if self._id_offset:
            ids = ids + self._id_offset
            result = replace(result, people=replace(result.people, ids=ids))
        self._max_id = max(self._max_id, int(ids.max()))
        return result

    def _run_guarded(self, work: Callable[[], None], after: Callable[[], None]) -> None:
        """Run `work` in the current thread, then `after`; an error of `work` ends the loop and is raised by `wait`."""
        try:
            work()
        except BaseException as error:
            with self._lock:
                self._error = self._error or error
            self._stopping.set()
            self._capture_queue.close()
        finally:
            after()

    def _end(self) -> None:
        """Empty the queue until the 2D thread has ended, then close the subscribers. Runs in the 3D thread."""
        while self._threads[1].is_alive():  # the 2D thread may block on the full queue
            try:
                self._tracked.get(timeout=0.05)
            except queue.Empty:
                continue
        self._close_subscribers()
