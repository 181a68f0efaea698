"""Thread that processes the results of a loop at its own rate."""

import threading
from collections.abc import Callable
from typing import Protocol

from pose.live.base import Wanted
from pose.live.mailbox import Mailbox
from pose.live.result import LiveResult

JOIN_SECONDS = 10.0
QUEUE_CAPACITY = 20  # of sinks that send newest and final frames; several become final at the end


class Publisher(Protocol):
    """What a subscriber needs of a live loop or a playback; `pose.live.base.Loop` describes the methods."""

    def subscribe(self, maxlen: int = ..., *, wanted: Wanted = ...) -> Mailbox[LiveResult]:
        """Return a mailbox that receives every result from now on."""
        ...

    def unsubscribe(self, mailbox: Mailbox[LiveResult]) -> None:
        """Remove a subscriber and close its mailbox."""
        ...


class Subscriber:
    """Thread that calls a function with the results of a loop, until the loop ends or `close` is called.

    If the function is slower than the loop, results are dropped.
    """

    def __init__(
        self,
        loop: Publisher,
        work: Callable[[LiveResult], None],
        *,
        maxlen: int = 4,
        after: Callable[[], object] | None = None,
        drain: bool = False,
        wanted: Wanted = "newest",
        room: Callable[[LiveResult], int] | None = None,
    ) -> None:
        """Subscribe and start the thread.

        Args:
            work: Function called with each result, in the thread of the subscriber.
            maxlen: Capacity of the queue; when it is full, the oldest result is dropped.
            after: Function called at the end in the same thread, even after an error.
            drain: Whether `close` waits without limit until all queued results are processed; otherwise it waits at
                most 10 s.
            wanted: Kind of results, "newest", "final" or "all", as in `Loop.subscribe`.
            room: Maximum number of queued results when a result is added, at most `maxlen`.
        """
        # Text of the first error of `work` or `after`; None without one. After an error, `work` is not called again.
        self.problem: str | None = None
        self._loop, self._drain = loop, drain
        self._work, self._after = work, after
        self._mailbox = loop.subscribe(maxlen, wanted=wanted)
        self._mailbox.room = room
        self._thread = threading.Thread(target=self._run, name="subscriber", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Number of results dropped because `work` was too slow."""
        return self._mailbox.dropped

    def close(self) -> None:
        """Process the queued results and end. May be called twice."""
        self._loop.unsubscribe(self._mailbox)
        self._thread.join(None if self._drain else JOIN_SECONDS)

    def _run(self) -> None:
        try:
            for live in self._mailbox:
                self._work(live)
        except Exception as error:  # a failing sink must not affect the others
            self._failed(error)
        finally:
            self._loop.unsubscribe(self._mailbox)
            try:
                if self._after is not None:
                    self._after()
            except Exception as error:
                self._failed(error)

    def _failed(self, error: Exception) -> None:
        """Store the first error."""
        self.problem = self.problem or str(error) or type(error).__name__
