"""The newest message of a live loop, for any number of browsers, each at its own pace."""

import asyncio

from pose.live import LiveLoop, LiveResult
from pose.web import messages
from pose.web.jpeg import encode_jpeg
from pose.world.upright import Upright

PICTURE_SIDE = 960  # px, of the pictures that the server sends


class Feed:
    """Turns the results of a loop into messages, once for all who look, and keeps only the newest.

    Who is slow finds a newer message the next time, and holds nobody up. number: of the newest picture that was
    answered, -1 before the first. ended: the loop is over.
    """

    def __init__(self, loop: LiveLoop, *, pictures: bool) -> None:
        """It gets what comes from now on, so make it before the loop starts, and where it is to `run`.

        pictures: send the picture along, for browsers that do not have it.
        """
        self.number = -1
        self.ended = asyncio.Event()
        self._loop = loop
        self._pictures = pictures
        self._upright = Upright()
        self._turn = 0
        self._newest: str | bytes = ""
        self._changed = asyncio.Event()
        events, self._woken = asyncio.get_running_loop(), asyncio.Event()
        self._mailbox = loop.subscribe(1, lambda: events.call_soon_threadsafe(self._woken.set))

    async def run(self) -> None:
        """Follow the loop until it ends."""
        mailbox, woken = self._mailbox, self._woken
        try:
            while True:
                is_last = mailbox.closed  # asked first: what was put before is still there
                while (live := mailbox.take()) is not None:
                    self._put(await asyncio.to_thread(self._message, live), live.result.index)
                if is_last:
                    break
                await woken.wait()
                woken.clear()
        finally:
            self._loop.unsubscribe(mailbox)
            self.ended.set()

    async def after(self, turn: int) -> tuple[int, str | bytes]:
        """The newest message and its turn, once it is newer than `turn`."""
        while self._turn <= turn:
            await self._changed.wait()
        return self._turn, self._newest

    async def answered(self, number: int) -> None:
        """Wait until that picture, or a later one, has been answered."""
        while self.number < number:
            await self._changed.wait()

    def _put(self, message: str | bytes, number: int) -> None:
        self._turn += 1
        self._newest, self.number = message, number
        self._changed.set()
        self._changed = asyncio.Event()

    def _message(self, live: LiveResult) -> str | bytes:
        if not self._pictures:
            return messages.result(live, self._upright)
        jpeg, scale = encode_jpeg(live.image, PICTURE_SIDE)
        return messages.with_picture(messages.result(live, self._upright, scale), jpeg)
