"""The server's own source: read while somebody looks, and let go of when nobody does."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from pose.errors import PoseError
from pose.live import LiveLoop, LiveSource
from pose.web.feed import Feed

AWAY_SECONDS = 10.0  # after the last browser left; who loads the page again finds everything as it was


class SharedSource:
    """One loop for all who look. ended: the source is over, or the loop failed."""

    def __init__(self, loop: Callable[[LiveSource], LiveLoop], source: Callable[[], LiveSource]) -> None:
        """loop: makes the one of a source. source: opens it, each time that somebody looks after nobody did."""
        self.ended = asyncio.Event()
        self._new_loop = loop
        self._open = source
        self._lock = asyncio.Lock()  # of opening and closing
        self._loop: LiveLoop | None = None
        self._feed: Feed | None = None
        self._following: asyncio.Task[None] | None = None
        self._away: asyncio.TimerHandle | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._watching = 0

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[tuple[LiveLoop, Feed]]:
        """The loop, running for as long as this lasts. Raises PoseError when the source cannot be opened."""
        self._watching += 1
        if self._away is not None:
            self._away.cancel()
        try:
            async with self._lock:
                if self._loop is None or self._feed is None:
                    source = await asyncio.to_thread(self._open)
                    self._loop = self._new_loop(source)
                    self._feed = Feed(self._loop, pictures=True)
                    self._loop.start()
                    self._following = asyncio.create_task(self._follow(self._feed))
                loop, feed = self._loop, self._feed
            yield loop, feed
        finally:
            self._watching -= 1
            if self._watching == 0:
                self._away = asyncio.get_running_loop().call_later(AWAY_SECONDS, self._leave)

    async def _follow(self, feed: Feed) -> None:
        try:
            await feed.run()
        finally:
            if self._feed is feed:  # nobody told it to end
                self.ended.set()

    def _leave(self) -> None:
        self._leaving = asyncio.create_task(self._stop_unwatched())

    async def _stop_unwatched(self) -> None:
        async with self._lock:
            if self._watching == 0 and not self.ended.is_set():
                with suppress(PoseError):  # it failed while it was let go of; who looks next opens it again
                    await self._stop()

    async def _stop(self) -> None:
        """Raises what made the loop, or what follows it, fail."""
        loop, following = self._loop, self._following
        self._loop = self._feed = self._following = None
        if loop is not None and following is not None:
            try:
                await asyncio.to_thread(loop.stop)
            finally:
                await following

    async def close(self) -> None:
        """Let go of the source for good. Raises what made the loop fail."""
        if self._away is not None:
            self._away.cancel()
        async with self._lock:
            await self._stop()
