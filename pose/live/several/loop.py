"""Live loop over several cameras: one `LiveLoop` for each, and one thread that fuses their people.

For each source: source --> LiveLoop --(mailbox)--> fusion --(one mailbox each)--> subscribers. Calibration and the
assignment of tracks to people run in separate threads.
"""

import math
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Self

from pose.config import LiveConfig
from pose.errors import PoseError, UsageError
from pose.live.base import Loop, Subscription
from pose.live.camera import gravity_text
from pose.live.loop import JOIN_SECONDS, LiveLoop
from pose.live.result import LiveResult, LiveStatus
from pose.live.several.calibration import Calibration
from pose.live.several.pacing import Pacing
from pose.live.several.rigging import Rigging
from pose.live.several.stage import FusionStage
from pose.live.sources import LiveSource
from pose.multiview.calibration_files import check_cameras, read_cameras
from pose.multiview.types import ViewCamera
from pose.multiview.videos import MAX_CAMERAS, MIN_CAMERAS, source_names
from pose.pipeline import Pipeline
from pose.utils.json_values import Json
from pose.world.clean import Steps

BACKLOG = 8  # maximum number of results of a camera that wait for the fusion
POLL_SECONDS = 0.2
SWITCH_SECONDS = 0.0005  # after which Python switches threads; its default is 0.005 s


class Sources:
    """Description of several sources as one, for display."""

    def __init__(self, sources: Sequence[LiveSource]) -> None:
        self.name = ", ".join(source.name for source in sources)  # common name of all sources
        self.fps = sources[0].fps  # nominal frame rate of the camera whose image is displayed, frames/s
        self.notice = ""  # errors of failed cameras, and the problem of the calibration; empty without any
        self._sources = sources

    @property
    def message(self) -> str:
        """Current problems of all sources, followed by `notice`; empty without any."""
        return "; ".join(part for part in (*(source.message for source in self._sources), self.notice) if part)


class SeveralLoop(Loop):
    """A live loop over 2 to 8 cameras, which fuses their people once the cameras are calibrated.

    One camera is displayed: the first, or another one if that fails or is not calibrated. Each of its frames gives one
    result. Before the calibration, results contain only the people whom this camera sees. Track ids and world change
    with every calibration (`LiveResult.stream`). The loop ends when all cameras have ended.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        sources: Sequence[LiveSource],
        *,
        world: Steps | bool | None = None,
        cameras: str | Path | None = None,
        height: float | None = None,
    ) -> None:
        """Create the loop without starting it.

        Args:
            pipeline: Pipeline constructed with `live=True`; see `Pipeline.for_cameras`.
            world: Settings of the world coordinates; True for the defaults, None or False for camera coordinates.
            cameras: Calibration file, such as `cameras.json` of an earlier run; None calibrates from the people.
            height: Body height of the person seen longest, m, which determines the scale. None takes the scale from the
                lifter.

        Raises:
            UsageError: If there are fewer than 2 or more than 8 sources.
            PoseError: If the calibration file is invalid.
        """
        if not MIN_CAMERAS <= len(sources) <= MAX_CAMERAS:
            raise UsageError(f"source: got {len(sources)}; allowed: 1, or {MIN_CAMERAS} to {MAX_CAMERAS} cameras")
        self._names = source_names([source.name for source in sources])
        if cameras is not None:
            check_cameras(Path(cameras), self._names)
        super().__init__()
        self._sources = Sources(sources)
        self.source = self._sources
        self.config, self.ahead = LiveConfig(bridge=0.0), None
        # A frame that waits for the networks is soon too old to be fused.
        self._loops = [
            LiveLoop(own, source, self.config, backlog=1, counts=False)
            for own, source in zip(pipeline.for_cameras(len(sources)), sources, strict=True)
        ]
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._mailboxes = [loop.subscribe(BACKLOG, self._wake.set, "all") for loop in self._loops]
        given = None if cameras is None else lambda sizes: read_cameras(Path(cameras), self._names, sizes)
        self.rigging = Rigging(self._names, self._camera, given, height)
        self._stage = FusionStage(self.rigging, Steps() if world is True else world or None)
        self._pacing = Pacing()
        self._people = 0
        self._world_text = ""  # state of gravity
        self._thread = threading.Thread(target=self._run, name="fusion", daemon=True)

    @property
    def pipeline(self) -> Pipeline:
        """See `LiveLoop.pipeline`."""
        return self._loops[0].pipeline

    @pipeline.setter
    def pipeline(self, pipeline: Pipeline) -> None:
        for loop, own in zip(self._loops, pipeline.for_cameras(len(self._loops)), strict=True):
            loop.pipeline = own

    @property
    def left_out(self) -> int:
        """See `Loop.left_out`."""
        return sum(loop.left_out for loop in self._loops)

    @property
    def paused(self) -> bool:
        """See `Loop.paused`."""
        return self._loops[0].paused

    @property
    def running(self) -> bool:
        """See `Loop.running`."""
        return self._thread.is_alive() and not self._finished.is_set()  # the thread ends just after the event

    @property
    def calibration(self) -> Calibration | None:
        """Calibration of the cameras; None before the first one, and after a camera was moved."""
        return self.rigging.calibration

    @property
    def cameras(self) -> tuple[Mapping[str, Json], ...]:
        """See `Loop.cameras`."""
        return () if self.calibration is None else self.calibration.listed

    def start(self) -> Self:
        """See `Loop.start`."""
        for loop in self._loops:
            loop.start()
        self._thread.start()
        return self

    def close(self) -> None:
        """See `Loop.close`."""
        for loop in self._loops:
            loop.source.close()

    def stop(self) -> None:
        """See `Loop.stop`."""
        self._stopping.set()
        self.close()
        for loop in self._loops:
            self._stop(loop)
        if self._thread.ident is None:
            self._close_subscribers()
        else:
            self._thread.join(JOIN_SECONDS)
        self._raise_error()

    def pause(self, paused: bool = True) -> None:
        """See `Loop.pause`."""
        for loop in self._loops:
            loop.pause(paused)

    def status(self) -> LiveStatus:
        """Return the status as `Loop.status` does. Captured and dropped frames are those of all cameras."""
        every = [loop.status() for loop in self._loops]
        dropped = sum(one.dropped for one in every) + sum(mailbox.dropped for mailbox in self._mailboxes)
        with self._lock:
            fps, median, high = self._meter.recent()
            processed, people, world_text = self._meter.count, self._people, self._world_text
        return replace(
            every[self._stage.lead],
            fps=fps,
            latency_ms=median,
            latency_p95_ms=high,
            people=people,
            frames_in=sum(one.frames_in for one in every),
            processed=processed,
            dropped=dropped,
            message=self.source.message,
            world=world_text,
            cameras=self.rigging.status_text(),
        )

    def _deliver_pending(self, leaving: Sequence[Subscription]) -> None:
        """Do nothing, because every result is final."""

    def _camera(self, size: tuple[int, int]) -> ViewCamera:
        """Return the uncalibrated camera for an image size (width, height)."""
        return ViewCamera.of(self.pipeline.camera(size))

    def _run(self) -> None:
        """Fuse results until all cameras have ended, in the fusion thread."""
        interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)  # a calibration, mostly Python, then delays the other threads less
        try:
            while not all(mailbox.closed for mailbox in self._mailboxes):
                self._wake.wait(POLL_SECONDS)
                self._wake.clear()
                self._take_all()
            self._take_all()
            if all(self._failed(loop) is not None for loop in self._loops):
                self._error = self._failed(self._loops[0])
        except BaseException as error:
            self._error = error
            for loop in self._loops:
                with suppress(Exception):  # only the first error is reported
                    loop.stop()
        finally:
            sys.setswitchinterval(interval)
            self._close_subscribers()

    def _stop(self, loop: LiveLoop) -> None:
        """Stop the loop of one camera; store the message of its `PoseError` instead of raising it."""
        try:
            loop.stop()
        except PoseError as error:
            self._sources.notice = str(error)

    def _failed(self, loop: LiveLoop) -> BaseException | None:
        """Return the error of the loop of one camera; None without one."""
        try:
            loop.wait(0)
        except Exception as error:
            return error
        return None

    def _take_all(self) -> None:
        """Process the queued results of all cameras, and publish the fused results of the displayed camera."""
        arrived, ended = [], set()
        for index, mailbox in enumerate(self._mailboxes):
            if mailbox.closed:
                ended.add(index)
            while (live := mailbox.take()) is not None:
                arrived.append((index, live))
        # While the loop stops, the cameras end one after another. The displayed camera must not change then.
        for live in self._stage.take(arrived, () if self._stopping.is_set() else ended):
            self._publish(live)
        failed = [error for loop in self._loops if (error := self._failed(loop)) is not None]
        for error in failed:
            if not isinstance(error, PoseError):
                raise error
        self._sources.notice = "; ".join(part for part in (*map(str, failed), self.rigging.message) if part)
        self._sources.fps = self._loops[self._stage.lead].source.fps
        if self.calibration is not None and self._pacing.is_due(now := monotonic()):
            self._pace(now)

    def _pace(self, now: float) -> None:
        """Limit the frame rates of the cameras that are not displayed."""
        every, lead = [loop.status() for loop in self._loops], self._stage.lead
        fastest = max(status.fps for index, status in enumerate(every) if index != lead)
        limit = self._pacing.step(now, lead, every[lead], fastest)
        for index, loop in enumerate(self._loops):
            loop.max_fps = math.inf if index == lead else limit

    def _publish(self, live: LiveResult) -> None:
        with self._delivery_lock, self._lock:
            number, self._published = self._published, self._published + 1
            self._people = len(live.result.people)
            self._world_text = "" if live.world is None else gravity_text(live.world)
            subscribers = list(self._subscribers)
        for subscriber in subscribers:
            subscriber.deliver(number, live, refined=False)
        with self._lock:
            self._meter.add(live.done, live.latency)
