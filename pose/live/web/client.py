"""One browser connection. The number of unanswered messages is limited in both directions."""

import asyncio
import time
from collections.abc import Mapping

from aiohttp import WSCloseCode, WSMsgType, web

from pose.errors import PoseError
from pose.live import Loop, PushedFrames
from pose.live.web import messages
from pose.live.web.bodies import EncodedShape
from pose.live.web.clock import BrowserClock
from pose.live.web.feed import Feed
from pose.live.web.jpeg import decode_jpeg
from pose.live.web.messages import ProtocolError
from pose.live.web.recording import RecordingStore, RunningRecording
from pose.utils.json_values import Json

STATUS_INTERVAL_S = 1.0
MAX_REASON_BYTES = 123  # maximum length of the reason for closing a WebSocket (RFC 6455, 5.5)


class Client:
    """The server side of one WebSocket connection."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        loop: Loop,
        feed: Feed,
        recordings: RecordingStore,
        owner: str,
        decoding: asyncio.Semaphore,
        camera: PushedFrames | None,
    ) -> None:
        """Prepare a connection, which `run` serves; the owner may list the recordings of this browser."""
        # `decoding` is held while an image is decoded. Without `camera` the server shows its own source.
        self._socket = socket
        self._loop = loop
        self._feed = feed
        self._recordings = recordings
        self._owner = owner
        self._decoding = decoding
        self._camera = camera
        self._clock = BrowserClock()
        self._recording: RunningRecording | None = None
        self._recording_lock = asyncio.Lock()
        self._recording_change: asyncio.Future[str] | None = None
        self._images_pushed = 0
        self._max_unanswered_images = messages.max_unanswered_images(loop.pipeline.config.lookahead)
        self._unanswered = 0
        self._answered = asyncio.Event()

    async def run(self) -> None:
        """Serve until the connection ends. A broken connection does not raise an error."""
        parts = (
            self._receive(),
            self._send_results(),
            self._send_status(),
            self._send_recordings(),
            self._send_end(),
        )
        work = [asyncio.create_task(part) for part in parts]
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except ProtocolError as error:
            await self._socket.close(code=WSCloseCode.POLICY_VIOLATION, message=reason(f"Invalid message: {error}."))
        except ConnectionError:
            pass  # the browser disconnected while a message was sent
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            if self._recording_change is not None:
                await asyncio.wait([self._recording_change])
            if self._recording is not None:
                await self._recordings.finish(self._recording)

    async def _receive(self) -> None:
        async for message in self._socket:
            if message.type is WSMsgType.BINARY:
                await self._receive_image(message.data)
            elif message.type is WSMsgType.TEXT:
                await self._receive_text(messages.parse_text(message.data))

    async def _receive_image(self, data: bytes) -> None:
        arrived = time.monotonic()
        if self._camera is None:
            raise ProtocolError("unexpected image, because this server shows its own source")
        seconds, jpeg = messages.parse_image_message(data)
        # With more unanswered images than agreed, nothing more is read, which limits the memory of a connection.
        await self._feed.processed(self._images_pushed - self._max_unanswered_images)
        try:
            async with self._decoding:
                image = await asyncio.to_thread(decode_jpeg, jpeg, messages.MAX_SIDE_PX)
        except ValueError as error:
            raise ProtocolError(str(error)) from error
        self._images_pushed = 1 + self._camera.push(image, self._clock.to_local(seconds, arrived))

    async def _receive_text(self, message: Mapping[str, Json]) -> None:
        match message["type"]:
            case "ack":
                self._unanswered = max(0, self._unanswered - 1)
                self._answered.set()
                if self._loop.ahead is not None and "after" in message:
                    self._loop.ahead.add_display_delay(messages.number_in(message, "after") / 1000)
            case "ping":
                await self._socket.send_str(messages.pong(messages.number_in(message, "time"), time.monotonic()))
            case "record":
                await self._record(message.get("on"))
            case other:
                raise ProtocolError(f"unknown type {str(other)[:20]!r}")

    async def _send_results(self) -> None:
        number = 0
        known: Mapping[int, EncodedShape] = {}  # shapes of the last result; the page keeps only these
        while True:
            while self._unanswered >= messages.MAX_UNANSWERED:
                self._answered.clear()
                await self._answered.wait()
            number, message = await self._feed.newer_message(number)
            shapes = self._feed.shapes
            self._unanswered += 1
            for person, shape in shapes.items():
                if known.get(person) is not shape:
                    await self._socket.send_str(messages.body(person, shape))
            known = shapes
            if isinstance(message, bytes):
                await self._socket.send_bytes(message)
            else:
                await self._socket.send_str(message)

    async def _send_end(self) -> None:
        """Wait until the loop ends because its source ended or failed, then close the connection with the reason."""
        await self._feed.ended.wait()
        await self._record(False)
        try:
            self._loop.wait(0)
        except PoseError as error:
            await self._socket.close(code=WSCloseCode.INTERNAL_ERROR, message=reason(str(error)))
        else:
            await self._socket.close(code=WSCloseCode.OK, message=b"The video has ended.")

    async def _send_status(self) -> None:
        while True:
            await self._socket.send_str(messages.status(self._loop.status(), self._recording))
            await asyncio.sleep(STATUS_INTERVAL_S)
            if self._recording is not None and self._recording.is_over:
                await self._record(False)

    async def _send_recordings(self) -> None:
        """Send the list of this browser's recordings now and after each change."""
        version = -1
        while True:
            version = await self._recordings.newer_version(version)
            await self._socket.send_str(messages.recordings(self._recordings.listed(self._owner)))

    async def _record(self, on: object) -> None:
        if not isinstance(on, bool):
            raise ProtocolError("record: expected on: true or false")
        async with self._recording_lock:
            if on and self._recording is None:
                change = self._start_recording()
            elif not on and self._recording is not None:
                change = self._finish_recording(self._recording)
            else:
                return
            # Cancellation, for example when the browser disconnects, does not stop a thread. `run` waits for it.
            self._recording_change = asyncio.ensure_future(change)
            await self._socket.send_str(await asyncio.shield(self._recording_change))

    async def _start_recording(self) -> str:
        """Start a recording, and return the message for the browser."""
        try:
            self._recording = await self._recordings.start(self._loop, self._owner)
        except PoseError as error:  # such as a full disk or a read-only folder
            return messages.not_recorded(str(error))
        return messages.recording_started(self._recording.name)

    async def _finish_recording(self, recording: RunningRecording) -> str:
        """Finish a recording, and return the message for the browser."""
        finished = await self._recordings.finish(recording)
        self._recording = None
        return messages.recorded(finished)


def reason(text: str) -> bytes:
    """Encode the reason for closing a connection in UTF-8, truncated to `MAX_REASON_BYTES` at a character boundary."""
    return text.encode()[:MAX_REASON_BYTES].decode(errors="ignore").encode()
