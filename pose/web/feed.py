"""The newest message of a live loop, for any number of browsers at their own rates."""

import asyncio
from collections.abc import Mapping

from pose.live import LiveResult, Loop
from pose.web import messages
from pose.web.bodies import EncodedShape, PageBodies
from pose.web.jpeg import encode_jpeg
from pose.world.upright import Upright

MAX_IMAGE_SIDE_PX = 960  # maximum side of images that the server sends


class Feed:
    """Converter of a loop's results to messages, once for all browsers. Only the newest message is kept.

    A slow browser skips messages and does not delay other browsers.

    Attributes:
        number: Index of the newest processed image; -1 before the first.
        ended: Event that is set when the loop has ended.
        shapes: Shapes of the bodies in the newest message, by person id.
    """

    def __init__(self, loop: Loop, *, pictures: bool, body: bool = False) -> None:
        """Subscribe to the loop. Call this before the loop starts, in the asyncio event loop that executes `run`.

        Args:
            loop: Live loop whose results are converted.
            pictures: Whether to send the images, for browsers that do not have them.
            body: Whether to send bodies for the 3D view.
        """
        self.number = -1
        self.ended = asyncio.Event()
        self._loop = loop
        self._pictures = pictures
        self._bodies = PageBodies() if body else None
        self.shapes: Mapping[int, EncodedShape] = {}
        self._upright = Upright()
        self._turn = 0
        self._newest: str | bytes = ""
        self._changed = asyncio.Event()
        events, self._woken = asyncio.get_running_loop(), asyncio.Event()
        self._mailbox = loop.subscribe(1, lambda: events.call_soon_threadsafe(self._woken.set))

    async def run(self) -> None:
        """Convert the results of the loop until it ends."""
        mailbox, woken = self._mailbox, self._woken
        try:
            while True:
                is_last = mailbox.closed  # must be read first: results that were put before `close` are still taken
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
        """Wait for a message with a number above `turn`; return the number and the message."""
        while self._turn <= turn:
            await self._changed.wait()
        return self._turn, self._newest

    async def answered(self, number: int) -> None:
        """Wait until image `number` or a later one has been processed."""
        while self.number < number:
            await self._changed.wait()

    def _put(self, message: str | bytes, number: int) -> None:
        self._turn += 1
        self.shapes = {} if self._bodies is None else self._bodies.shapes
        self._newest, self.number = message, number
        self._changed.set()
        self._changed = asyncio.Event()

    def _message(self, live: LiveResult) -> str | bytes:
        if not self._pictures:
            return messages.result(live, self._upright, bodies=self._bodies)
        jpeg, scale = encode_jpeg(live.image, MAX_IMAGE_SIDE_PX)
        return messages.with_picture(messages.result(live, self._upright, scale, self._bodies), jpeg)
