"""The newest message of a live loop, for any number of browsers at their own rates."""

import asyncio
from collections.abc import Mapping

from pose.live import LiveResult, Loop
from pose.live.web import messages
from pose.live.web.bodies import EncodedShape, PageBodies
from pose.live.web.jpeg import encode_jpeg
from pose.world.upright import Upright

MAX_IMAGE_SIDE_PX = 960  # maximum side of images that the server sends


class Feed:
    """Converter of a loop's results to messages, once for all browsers; slow browsers skip messages."""

    def __init__(self, loop: Loop, *, with_images: bool, body: bool = False) -> None:
        """Subscribe to the loop before it starts, in the asyncio event loop that executes `run`."""
        self.image_index = -1  # index of the newest processed image; -1 before the first
        self.ended = asyncio.Event()  # event that is set when the loop has ended
        self._loop = loop
        self._with_images = with_images
        self._bodies = PageBodies() if body else None
        self.shapes: Mapping[int, EncodedShape] = {}  # shapes of the bodies in the newest message, by person id
        self._upright = Upright()
        self._message_number = 0
        self._newest: str | bytes = ""
        self._changed = asyncio.Event()
        events, self._woken = asyncio.get_running_loop(), asyncio.Event()
        self._mailbox = loop.subscribe(1, lambda: events.call_soon_threadsafe(self._woken.set))

    async def run(self) -> None:
        """Convert the results of the live loop to messages until the loop ends."""
        mailbox, woken = self._mailbox, self._woken
        try:
            while True:
                is_last = mailbox.closed  # must be read first: results that were put before `close` are still taken
                while (live := mailbox.take()) is not None:
                    self._publish(await asyncio.to_thread(self._message, live), live.result.index)
                if is_last:
                    break
                await woken.wait()
                woken.clear()
        finally:
            self._loop.unsubscribe(mailbox)
            self.ended.set()

    async def newer_message(self, image_index: int) -> tuple[int, str | bytes]:
        """Wait for a message newer than number `image_index` (0: any), and return its number, from 1, and it."""
        while self._message_number <= image_index:
            await self._changed.wait()
        return self._message_number, self._newest

    async def processed(self, image_index: int) -> None:
        """Wait until the image with the index `image_index`, or a later one, has been processed."""
        while self.image_index < image_index:
            await self._changed.wait()

    def _publish(self, message: str | bytes, image_index: int) -> None:
        self._message_number += 1
        self.shapes = {} if self._bodies is None else self._bodies.shapes
        self._newest, self.image_index = message, image_index
        self._changed.set()
        self._changed = asyncio.Event()

    def _message(self, live: LiveResult) -> str | bytes:
        if not self._with_images:
            return messages.result(live, self._upright, bodies=self._bodies)
        jpeg, scale = encode_jpeg(live.image, MAX_IMAGE_SIDE_PX)
        return messages.with_image(messages.result(live, self._upright, scale, self._bodies), jpeg)
