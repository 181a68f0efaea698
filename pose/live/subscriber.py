"""A thread that does something with every result of a loop, in its own time."""

import threading
from collections.abc import Callable

from pose.live.loop import LiveLoop, Wanted
from pose.live.result import LiveResult

JOIN_SECONDS = 10.0
WAITING = 20  # results of sinks that send newest and final ones: at the end several frames become final at once


class Subscriber:
    """Calls `work` with every result until the loop ends or `close` is called; results it is too slow for are dropped.

    problem: what made `work` fail, after which it is not called any more, or else `after`; None while all is well.
    """

    def __init__(
        self,
        loop: LiveLoop,
        work: Callable[[LiveResult], None],
        *,
        maxlen: int = 4,
        after: Callable[[], object] | None = None,
        whole: bool = False,
        wanted: Wanted = "newest",
    ) -> None:
        """maxlen: results that may wait. after: called at the end in the same thread, whatever happened. whole: the end
        is worth waiting for however long it takes; else for JOIN_SECONDS. wanted: see `LiveLoop.subscribe`.
        """
        self.problem: str | None = None
        self._loop, self._whole = loop, whole
        self._work, self._after = work, after
        self._mailbox = loop.subscribe(maxlen, wanted=wanted)
        self._thread = threading.Thread(target=self._run, name="subscriber", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Results that came too fast."""
        return self._mailbox.dropped

    def close(self) -> None:
        """Finish with what waits. May be called twice."""
        self._loop.unsubscribe(self._mailbox)
        self._thread.join(None if self._whole else JOIN_SECONDS)

    def _run(self) -> None:
        try:
            for live in self._mailbox:
                self._work(live)
        except Exception as error:  # one sink's trouble must not end the others
            self._failed(error)
        finally:
            self._loop.unsubscribe(self._mailbox)
            try:
                if self._after is not None:
                    self._after()
            except Exception as error:
                self._failed(error)

    def _failed(self, error: Exception) -> None:
        self.problem = self.problem or str(error) or type(error).__name__
