"""Base of live loops: results for any number of subscribers, and the end or error of the loop."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Protocol, Self

from pose.config import LiveConfig
from pose.live.horizon import Horizon
from pose.live.mailbox import Mailbox
from pose.live.meter import Meter
from pose.live.result import LiveResult, LiveStatus
from pose.pipeline import Pipeline
from pose.system.json_values import Json

# Which results a subscriber gets: the newest estimate of each frame, each frame as it is final, or both of them.
Wanted = Literal["newest", "final", "all"]


class Described(Protocol):
    """Protocol of the part of a `LiveSource` that subscribers of its loop use."""

    name: str
    fps: float

    @property
    def message(self) -> str:
        """Current problem; empty without one."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Subscription:
    """A subscriber.

    Attributes:
        since: Number of frames that were published before the subscription began.
    """

    mailbox: Mailbox[LiveResult]
    wanted: Wanted
    since: int

    def give(self, number: int, live: LiveResult, *, refined: bool) -> None:
        """Put frame `number` into the mailbox if the subscriber wants it."""
        wanted = self.wanted == "all" or (live.final if self.wanted == "final" else not refined)
        if wanted and number >= self.since:
            self.mailbox.put(live)


class Loop(ABC):
    """A live loop: one source (`LiveLoop`) or several cameras (`SeveralLoop`). Use it as a context manager.

    Attributes:
        source: Source of the loop.
        config: Settings of prediction.
        ahead: Prediction time of poses; None for no prediction.
    """

    source: Described
    config: LiveConfig
    ahead: Horizon | None

    def __init__(self) -> None:
        # Acquired before `_lock` where a frame starts or ends waiting for its refinement, and where subscribers leave,
        # so that each subscriber gets each frame once. A mailbox may call back meanwhile.
        self._order = threading.RLock()
        self._lock = threading.Lock()  # guards everything below
        self._subscribers: list[Subscription] = []
        self._published = 0  # frames whose newest estimate was published
        self._error: BaseException | None = None
        self._ended = False
        # Set at the end of the last thread. Until Python 3.12, a `Thread.join` that Ctrl-C interrupts marks the
        # thread as ended: later joins would not wait, and the program would exit beside native code, which aborts.
        self._over = threading.Event()
        self._meter = Meter()

    @property
    @abstractmethod
    def pipeline(self) -> Pipeline:
        """The pipeline that processes the next frame."""

    @pipeline.setter
    @abstractmethod
    def pipeline(self, pipeline: Pipeline) -> None: ...

    @property
    @abstractmethod
    def paused(self) -> bool:
        """Whether frames are discarded."""

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether the loop was started and has neither ended nor failed."""

    @abstractmethod
    def start(self) -> Self:
        """Start the threads and return the loop."""

    @abstractmethod
    def stop(self) -> None:
        """Stop capturing, finish the captured frames, and end. May be called twice, and before the start.

        Raises the error that made the loop fail.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the sources, even if the loop was never started."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` s for the end of the source; return whether it ended.

        Raises the error that made the loop fail.
        """
        ended = self._over.wait(timeout)
        self._raise_error()
        return ended

    @abstractmethod
    def pause(self, paused: bool = True) -> None:
        """Discard frames; `pause(False)` resumes."""

    @abstractmethod
    def status(self) -> LiveStatus:
        """Current rates, latencies and messages, from any thread."""

    @property
    def meter(self) -> Meter:
        """Latencies since the start. Read it after the loop has ended."""
        return self._meter

    @property
    def left_out(self) -> int:
        """Number of images discarded because they waited in buffers before a connection was read."""
        return 0

    @property
    def cameras(self) -> tuple[Mapping[str, Json], ...]:
        """Descriptions of several calibrated cameras, as in `RunInfo`; empty otherwise."""
        return ()

    def subscribe(
        self, maxlen: int = 2, notify: Callable[[], object] | None = None, wanted: Wanted = "newest"
    ) -> Mailbox[LiveResult]:
        """Return a mailbox that receives every result from now on and drops its oldest when it is full.

        It is closed when the loop ends. Call `unsubscribe` when it is no longer needed.

        Args:
            maxlen: Capacity of the mailbox, at least 1.
            notify: Function called after every new result, in the thread of the loop; must not block.
            wanted: "newest": each frame once, as soon as it has 3D. "final": each frame once, after the lifter has
                refined it, a few frames later; at the end of the loop the remaining frames come unrefined. "all": both;
                `LiveResult.final` distinguishes them. Without a refining lifter each frame comes once and is final.
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
        with self._order:
            with self._lock:
                leaving = [one for one in self._subscribers if one.mailbox is mailbox]
                for one in leaving:
                    self._subscribers.remove(one)
            self._give_rest(leaving)
        mailbox.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def _give_rest(self, leaving: Sequence[Subscription]) -> None:
        """Send the remaining unrefined frames to subscribers of final frames that unsubscribe."""

    def _close_subscribers(self) -> None:
        with self._order:
            with self._lock:
                self._ended = True
                subscribers, self._subscribers = self._subscribers, []
            self._give_rest(subscribers)
        for one in subscribers:
            one.mailbox.close()
        self._over.set()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error
