"""One browser: what it sends, what it is sent, and never more under way than it answers."""

import asyncio
import time
from collections.abc import Mapping

from aiohttp import WSCloseCode, WSMsgType, web

from pose.errors import PoseError
from pose.live import LiveLoop, PushedFrames
from pose.system.json_values import Json
from pose.web import messages
from pose.web.clock import ForeignClock
from pose.web.feed import Feed
from pose.web.jpeg import decode_jpeg
from pose.web.messages import ProtocolError
from pose.web.recording import RecordingStore, RunningRecording

STATUS_SECONDS = 1.0
LONGEST_REASON = 123  # bytes, of why a WebSocket closes (RFC 6455, 5.5)


class Client:
    """Serves one WebSocket until it closes."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        loop: LiveLoop,
        feed: Feed,
        recordings: RecordingStore,
        owner: str,
        decoding: asyncio.Semaphore,
        camera: PushedFrames | None,
    ) -> None:
        """owner: of the recordings that are made and listed here. decoding: to be held while a picture is decoded.
        camera: where the browser's own pictures go; None when the server shows its source.
        """
        self._socket = socket
        self._loop = loop
        self._feed = feed
        self._recordings = recordings
        self._owner = owner
        self._decoding = decoding
        self._camera = camera
        self._clock = ForeignClock()
        self._recording: RunningRecording | None = None
        self._one_at_a_time = asyncio.Lock()
        self._change: asyncio.Future[str] | None = None
        self._pictures = 0
        self._most_pictures = messages.most_pictures(loop.pipeline.config.lookahead)
        self._under_way = 0
        self._answered = asyncio.Event()

    async def run(self) -> None:
        """Raises nothing: a connection that breaks is the end of it."""
        parts = (
            self._receive(),
            self._send_results(),
            self._send_status(),
            self._send_recordings(),
            self._say_end(),
        )
        work = [asyncio.create_task(part) for part in parts]
        try:
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except ProtocolError as error:
            await self._socket.close(code=WSCloseCode.POLICY_VIOLATION, message=reason(f"The page sent {error}."))
        except ConnectionError:
            pass  # it went while we were sending
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            if self._change is not None:
                await asyncio.wait([self._change])
            if self._recording is not None:
                await self._recordings.finish(self._recording)

    async def _receive(self) -> None:
        async for message in self._socket:
            if message.type is WSMsgType.BINARY:
                await self._receive_picture(message.data)
            elif message.type is WSMsgType.TEXT:
                await self._receive_text(messages.parse_text(message.data))

    async def _receive_picture(self, data: bytes) -> None:
        arrived = time.monotonic()
        if self._camera is None:
            raise ProtocolError("a picture, but this server shows its own source")
        seconds, jpeg = messages.parse_picture(data)
        # Who has more under way than was agreed is not read any further, so memory holds a few pictures of each.
        await self._feed.answered(self._pictures - self._most_pictures)
        try:
            async with self._decoding:
                image = await asyncio.to_thread(decode_jpeg, jpeg, messages.LONGEST_SIDE)
        except ValueError as error:
            raise ProtocolError(str(error)) from error
        self._pictures = 1 + self._camera.push(image, self._clock.local(seconds, arrived))

    async def _receive_text(self, message: Mapping[str, Json]) -> None:
        match message["type"]:
            case "ack":
                self._under_way = max(0, self._under_way - 1)
                self._answered.set()
                if self._loop.ahead is not None and "after" in message:
                    self._loop.ahead.shown(messages.number_in(message, "after") / 1000)
            case "ping":
                await self._socket.send_str(messages.pong(messages.number_in(message, "time"), time.monotonic()))
            case "record":
                await self._record(message.get("on"))
            case other:
                raise ProtocolError(f"a message of the unknown type {str(other)[:20]!r}")

    async def _send_results(self) -> None:
        turn = 0
        while True:
            while self._under_way >= messages.UNDER_WAY:
                self._answered.clear()
                await self._answered.wait()
            turn, message = await self._feed.after(turn)
            self._under_way += 1
            if isinstance(message, bytes):
                await self._socket.send_bytes(message)
            else:
                await self._socket.send_str(message)

    async def _say_end(self) -> None:
        """Wait until the loop is over: its source ended, or it failed."""
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
            await asyncio.sleep(STATUS_SECONDS)
            if self._recording is not None and self._recording.is_over:
                await self._record(False)

    async def _send_recordings(self) -> None:
        """Send the list now and whenever it changes."""
        version = -1
        while True:
            version = await self._recordings.after(version)
            await self._socket.send_str(messages.recordings(self._recordings.listed(self._owner)))

    async def _record(self, on: object) -> None:
        if not isinstance(on, bool):
            raise ProtocolError("a record message without on: true or false")
        async with self._one_at_a_time:
            if on and self._recording is None:
                change = self._start_recording()
            elif not on and self._recording is not None:
                change = self._finish_recording(self._recording)
            else:
                return
            # Threads do not stop where we are cancelled, as when the browser goes: `run` waits for this one's end.
            self._change = asyncio.ensure_future(change)
            await self._socket.send_str(await asyncio.shield(self._change))

    async def _start_recording(self) -> str:
        """The answer."""
        try:
            self._recording = await self._recordings.start(self._loop, self._owner)
        except PoseError as error:  # a full disk, a folder that cannot be written
            return messages.not_recorded(str(error))
        return messages.recording_started(self._recording.name)

    async def _finish_recording(self, recording: RunningRecording) -> str:
        """The answer."""
        kept = await self._recordings.finish(recording)
        self._recording = None
        return messages.recorded(kept)


def reason(text: str) -> bytes:
    """Why a connection closes: as much of it as fits, in whole characters."""
    return text.encode()[:LONGEST_REASON].decode(errors="ignore").encode()
