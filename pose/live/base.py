"""Base class of live loops, which distributes results to subscribers and reports the end or the error of the loop."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self

from pose.config import LiveConfig
from pose.live.horizon import Horizon
from pose.live.mailbox import Mailbox
from pose.live.meter import Meter
from pose.live.result import LiveResult, LiveStatus
from pose.pipeline import Pipeline
from pose.utils.json_values import Json

# Results that a subscriber gets of each frame: the newest estimate, the final (refined) one, or both.
Wanted = Literal["newest", "final", "all"]


class NamedSource(Protocol):
    """Protocol of the properties of a source that subscribers of its loop use."""

    name: str  # name for display
    fps: float  # nominal frame rate, frames/s

    @property
    def message(self) -> str:
        """Current problem, for display; empty without one."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Subscription:
    """A subscriber of a loop."""

    mailbox: Mailbox[LiveResult]  # queue that receives the results
    wanted: Wanted  # kind of results, "newest", "final" or "all", as in `Loop.subscribe`
    since: int  # number of the first frame for the subscriber, counted from 0 at the start of the loop

    def deliver(self, number: int, live: LiveResult, *, refined: bool) -> None:
        """Put a result into the mailbox if the subscriber wants it; `refined` is a frame's second result."""
        wanted = self.wanted == "all" or (live.final if self.wanted == "final" else not refined)
        if wanted and number >= self.since:
            self.mailbox.put(live)


class Loop(ABC):
    """A live loop over one source (`LiveLoop`) or several cameras (`SeveralLoop`). Use it as a context manager."""

    source: NamedSource  # source of the loop
    config: LiveConfig  # settings of pose prediction: the prediction time, and how long occluded people are predicted
    ahead: Horizon | None  # prediction time, fixed or measured; None if poses are not predicted

    def __init__(self) -> None:
        # Held while frames are added to or removed from those that wait for refinement, and while subscribers are
        # removed, so that each subscriber gets each frame once. Acquired before `_lock`. It is re-entrant, because the
        # callback of a mailbox may unsubscribe.
        self._delivery_lock = threading.RLock()
        self._lock = threading.Lock()  # guards everything below
        self._subscribers: list[Subscription] = []
        self._published = 0  # frames whose newest estimate was published
        self._error: BaseException | None = None
        self._ended = False
        # Set at the end of the last thread. Until Python 3.12, a `Thread.join` that Ctrl-C interrupts marks the
        # thread as ended: later joins would not wait, and the program would exit beside native code, which aborts.
        self._finished = threading.Event()
        self._meter = Meter()

    @property
    @abstractmethod
    def pipeline(self) -> Pipeline:
        """Pipeline that processes the next frame. It may be replaced while the loop runs."""

    @pipeline.setter
    @abstractmethod
    def pipeline(self, pipeline: Pipeline) -> None: ...

    @property
    @abstractmethod
    def paused(self) -> bool:
        """Whether new frames are discarded (see `pause`)."""

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether the loop was started and has neither ended nor failed."""

    @abstractmethod
    def start(self) -> Self:
        """Start the threads and return the loop."""

    @abstractmethod
    def stop(self) -> None:
        """Stop capturing, process the frames already captured, and end the loop.

        May be called twice, and before `start`. If the loop failed, its error is raised.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the sources, even if the loop was never started."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` s for the end of the loop, and return whether it ended; raise its error."""
        ended = self._finished.wait(timeout)
        self._raise_error()
        return ended

    @abstractmethod
    def pause(self, paused: bool = True) -> None:
        """Discard new frames until `pause(False)` is called."""

    @abstractmethod
    def status(self) -> LiveStatus:
        """Return current rates, latencies and messages. May be called from any thread."""

    @property
    def meter(self) -> Meter:
        """Frame rates and latencies since the start. Not thread-safe: read it after the loop has ended."""
        return self._meter

    @property
    def left_out(self) -> int:
        """Number of outdated images that were skipped: the source had buffered them before reading began."""
        return 0

    @property
    def cameras(self) -> tuple[Mapping[str, Json], ...]:
        """Descriptions of the cameras, as in `RunInfo.cameras`; empty for one camera, and without a calibration."""
        return ()

    def subscribe(
        self, maxlen: int = 2, notify: Callable[[], object] | None = None, wanted: Wanted = "newest"
    ) -> Mailbox[LiveResult]:
        """Return a mailbox that receives every result from now on, and drops its oldest result when it is full.

        The mailbox is closed when the loop ends. Call `unsubscribe` when it is no longer needed.

        Some lifters (networks from 2D to 3D) refine poses. Each frame then has two results: the newest estimate, as
        soon as its 3D pose is available, and some frames later a refined one. `LiveResult.final` distinguishes them.
        With other lifters, each frame has one result, which is final.

        Args:
            maxlen: Capacity of the mailbox, at least 1.
            notify: Function called after every new result, in the thread of the loop; must not block.
            wanted: Kind of results: "newest", "final" or "all". With "final", frames that are not refined before the
                end of the loop or of the subscription are sent unrefined.
        """
        mailbox: Mailbox[LiveResult] = Mailbox(maxlen, notify)
        with self._lock:
            if self._ended:
                mailbox.close()
            else:
                self._subscribers.append(Subscription(mailbox, wanted, self._published))
        return mailbox

    def unsubscribe(self, mailbox: Mailbox[LiveResult]) -> None:
        """Remove a subscriber and close its mailbox."""
        with self._delivery_lock:
            with self._lock:
                leaving = [one for one in self._subscribers if one.mailbox is mailbox]
                for one in leaving:
                    self._subscribers.remove(one)
            self._deliver_pending(leaving)
        mailbox.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    @abstractmethod
    def _deliver_pending(self, leaving: Sequence[Subscription]) -> None:
        """Send the frames waiting for refinement to those `leaving` subscribers that want final frames."""

    def _close_subscribers(self) -> None:
        with self._delivery_lock:
            with self._lock:
                self._ended = True
                subscribers, self._subscribers = self._subscribers, []
            self._deliver_pending(subscribers)
        for subscriber in subscribers:
            subscriber.mailbox.close()
        self._finished.set()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error
