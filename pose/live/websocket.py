"""Live poses for WebSocket clients."""

import asyncio
import errno
import logging
import os
import re
import socket
import threading
from contextlib import suppress
from time import monotonic
from typing import Any

from pose.errors import PoseError
from pose.live.loop import LiveLoop
from pose.live.mailbox import Mailbox
from pose.live.messages import messages
from pose.live.result import LiveResult
from pose.live.subscriber import Subscriber

MOST_CLIENTS = 16
MOST_CONNECTIONS = 64  # with those that have not said what they want, or are being refused
WAITING_FRAMES = 4  # of a client that reads slowly,
SYSTEM_BYTES = 1 << 16  # beside what the system holds for it
HANDSHAKE_SECONDS = 5.0
GOODBYE_SECONDS = 0.5
TROUBLE_SECONDS = 2.0  # for which a connection that could not be taken counts as trouble
NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# Programs send no Origin. A page of another site must not read poses behind the user's back; one of this computer may.
ORIGINS = (None, re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?"))


class WebSocketSink:
    """Serves every message to each WebSocket client; one that reads slowly misses frames, and slows nobody.

    port: the one that is bound, also where 0 was asked for. lost: frames that clients were too slow for. trouble: why
    nobody can connect now, empty while all is well. problem: why it gave up, None while it did not.
    """

    def __init__(self, loop: LiveLoop, host: str, port: int) -> None:
        """Raises PoseError when the address cannot be bound or the library is missing."""
        try:
            import websockets.asyncio.server  # noqa: F401 - it needs time, and may be missing
        except ImportError as error:
            raise PoseError("--ws needs websockets: pip install 'pose-run[webcam]'") from error
        self._clients: dict[Any, Mailbox[list[str]]] = {}
        self._connections: set[Any] = set()
        self._counting = threading.Lock()  # of what both threads count: the server's, and the subscriber's
        self._lost = 0  # by clients that are gone, and by all of them where this sink itself was too slow
        self._missed = 0  # by this sink, so far
        self._short_of_room = -TROUBLE_SECONDS  # when it last was
        self._events = asyncio.new_event_loop()
        self._events.set_exception_handler(self._note)
        self._ended = asyncio.Event()
        try:
            self._server = self._events.run_until_complete(self._serve(host, port))
        except OSError as error:
            self._events.close()
            number = error.errno or 0  # asyncio puts a sentence of its own before the system's words
            why = os.strerror(number) if number > 0 else error.strerror or str(error)
            raise PoseError(f"--ws: cannot bind {host}:{port}: {why.lower()}") from error
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="websocket", daemon=True)
        self._thread.start()
        self._made = threading.Event()
        self._subscriber = Subscriber(loop, self._send, after=self._hang_up)
        self._made.set()

    @property
    def problem(self) -> str | None:
        return self._subscriber.problem

    @property
    def lost(self) -> int:
        with self._counting:
            return self._lost + sum(box.dropped for box in self._clients.values())

    @property
    def trouble(self) -> str:
        if monotonic() - self._short_of_room < TROUBLE_SECONDS:
            return "nobody can connect: too many open files"
        return ""

    async def _serve(self, host: str, port: int) -> Any:
        from websockets.asyncio.server import ServerConnection, serve

        sink, quiet = self, logging.Logger("websocket")
        quiet.addHandler(logging.NullHandler())  # what strangers send is nothing to read about

        class Connection(ServerConnection):
            """One of at most MOST_CONNECTIONS."""

            def connection_made(self, transport: Any) -> None:
                super().connection_made(transport)
                sink._connections.add(self)
                # Else the system would keep minutes of old poses for who reads slowly.
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SYSTEM_BYTES)
                if len(sink._connections) > MOST_CONNECTIONS:
                    transport.abort()

            def connection_lost(self, error: Exception | None) -> None:
                super().connection_lost(error)
                sink._connections.discard(self)

        return await serve(
            self._client,
            host,
            port,
            origins=ORIGINS,
            compression=None,
            max_size=1024,
            open_timeout=HANDSHAKE_SECONDS,
            close_timeout=GOODBYE_SECONDS,
            logger=quiet,
            create_connection=Connection,
        )

    def _run(self) -> None:
        self._events.run_until_complete(self._until_ended())
        self._events.run_until_complete(self._events.shutdown_asyncgens())
        self._events.close()

    async def _until_ended(self) -> None:
        await self._ended.wait()
        self._server.close()
        try:
            await asyncio.wait_for(asyncio.shield(self._server.wait_closed()), GOODBYE_SECONDS)
        except TimeoutError:  # somebody does not read, not even that it is over
            for connection in list(self._connections):
                connection.transport.abort()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_closed(), GOODBYE_SECONDS)

    def _note(self, _events: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What goes wrong in the server: it goes on by itself, and tries to take connections again after a second."""
        if getattr(context.get("exception"), "errno", None) in NO_ROOM:
            self._short_of_room = monotonic()

    def _send(self, live: LiveResult) -> None:
        self._made.wait()  # a loop that runs already may be quicker than the line that made the subscriber
        texts, clients = messages(live), list(self._clients.values())
        missed, self._missed = self._missed, self._subscriber.dropped
        with self._counting:
            self._lost += (self._missed - missed) * len(clients)
        for mailbox in clients:
            mailbox.put(texts)

    async def _client(self, connection: Any) -> None:
        """One client, from its first to its last message."""
        from websockets.exceptions import ConnectionClosed

        if len(self._clients) >= MOST_CLIENTS:
            return await connection.close(1013, "too many clients")
        woken = asyncio.Event()
        mailbox: Mailbox[list[str]] = Mailbox(WAITING_FRAMES, lambda: self._call(woken.set))
        with self._counting:
            self._clients[connection] = mailbox
        gone = asyncio.create_task(connection.wait_closed())
        gone.add_done_callback(lambda _: mailbox.close())
        try:
            while True:
                is_last = mailbox.closed
                while (texts := mailbox.take()) is not None:
                    for text in texts:
                        await connection.send(text)
                if is_last:
                    break
                await woken.wait()
                woken.clear()
        except ConnectionClosed:
            pass
        finally:
            gone.cancel()
            self._gone(connection)

    def _gone(self, connection: Any) -> None:
        with self._counting:
            self._lost += self._clients.pop(connection).dropped

    def _call(self, callback: Any) -> None:
        """In the thread of the server, which may have ended."""
        with suppress(RuntimeError):
            self._events.call_soon_threadsafe(callback)

    def _hang_up(self) -> None:
        for mailbox in list(self._clients.values()):
            mailbox.close()
        self._call(self._ended.set)
        self._thread.join(5 * GOODBYE_SECONDS)

    def close(self) -> None:
        self._subscriber.close()
