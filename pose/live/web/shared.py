"""The server's own source, which is open while at least one browser is connected."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from pose.errors import PoseError
from pose.live import LiveSource, Loop
from pose.live.web.feed import Feed

CLOSE_DELAY_S = 10.0  # delay of closing the source after the last disconnection, so that a reload does not restart it
_LOG = logging.getLogger("pose.live.web")


class SharedSource:
    """A source and its loop, shared by all browsers; after its end the next browser opens it again."""

    def __init__(
        self, loop: Callable[[LiveSource], Loop], source: Callable[[], LiveSource | Loop], *, body: bool = False
    ) -> None:
        """Prepare the source, which is opened whenever the first browser connects."""
        self._body = body
        self.ended = asyncio.Event()  # event that is set when a loop has ended, by the end of its source or an error
        self.error: Exception | None = None  # error of the last loop, or None
        self._new_loop = loop
        self._open = source
        self._lock = asyncio.Lock()  # held while the source is opened or closed
        self._loop: Loop | None = None
        self._feed: Feed | None = None
        self._feed_task: asyncio.Task[None] | None = None
        self._close_timer: asyncio.TimerHandle | None = None
        self._close_task: asyncio.Task[None] | None = None
        self._viewers = 0

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[tuple[Loop, Feed]]:
        """Keep the source open, and yield its loop and feed, which all browsers share."""
        # The loop is stopped `CLOSE_DELAY_S` seconds after the last context ends.
        self._viewers += 1
        if self._close_timer is not None:
            self._close_timer.cancel()
        try:
            async with self._lock:
                if self._loop is None or self._feed is None:
                    source = await asyncio.to_thread(self._open)
                    self._loop = source if isinstance(source, Loop) else self._new_loop(source)
                    self._feed = Feed(self._loop, with_images=True, body=self._body)
                    self._loop.start()
                    self._feed_task = asyncio.create_task(self._run_feed(self._loop, self._feed))
                loop, feed = self._loop, self._feed
            yield loop, feed
        finally:
            self._viewers -= 1
            if self._viewers == 0:
                self._close_timer = asyncio.get_running_loop().call_later(CLOSE_DELAY_S, self._start_closing)

    async def _run_feed(self, loop: Loop, feed: Feed) -> None:
        error: Exception | None = None
        try:
            await feed.run()
        except Exception as failed:
            error = failed
        async with self._lock:
            if self._feed is not feed:  # `_stop` has already stopped this loop
                return
            self._loop = self._feed = None
            try:
                await asyncio.to_thread(loop.stop)
            except Exception as failed:
                error = failed
        if error is not None:
            _LOG.warning("%s: %s", loop.source.name, error, exc_info=None if isinstance(error, PoseError) else error)
        self.error = error
        self.ended.set()

    def _start_closing(self) -> None:
        self._close_task = asyncio.create_task(self._close_if_unwatched())

    async def _close_if_unwatched(self) -> None:
        async with self._lock:
            if self._viewers == 0:
                with suppress(PoseError):  # does not matter, because the next browser opens the source again
                    await self._stop()

    async def _stop(self) -> None:
        """Stop the loop, and raise its error if it has one."""
        loop, self._loop, self._feed = self._loop, None, None
        if loop is not None:
            await asyncio.to_thread(loop.stop)

    async def close(self) -> None:
        """Stop the live loop and close the source permanently."""
        if self._close_timer is not None:
            self._close_timer.cancel()
        async with self._lock:
            await self._stop()
        if self._feed_task is not None:
            await self._feed_task
