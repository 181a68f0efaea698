"""Server of live poses for WebSocket clients (`--ws`)."""

import asyncio
import re
import socket
import threading
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from time import monotonic
from typing import TYPE_CHECKING

from pose.errors import PoseError
from pose.live.access import check_token, is_loopback, same_secret
from pose.live.base import Loop
from pose.live.mailbox import Mailbox
from pose.live.messages import messages
from pose.live.result import LiveResult
from pose.live.rigid import RigidBodies
from pose.live.subscriber import QUEUE_CAPACITY, Subscriber

if TYPE_CHECKING:
    from aiohttp import web

MAX_CLIENTS = 16
SEND_BUFFER_BYTES = 1 << 16  # socket buffer of a client that reads slowly
HEARTBEAT_SECONDS = 40.0  # between pings; a client that does not answer within half of it is disconnected
CLOSE_SECONDS = 0.5
REJECTION_NOTICE_SECONDS = 2.0  # time for which a rejected connection is reported
# Allowed origins. Web pages of other sites must not read poses. Clients other than browsers send no Origin header.
ORIGIN = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?")


class WebSocketSink:
    """WebSocket server that sends each result of a loop as JSON messages to all clients.

    If a client reads too slowly, results for it are dropped. It does not delay the other clients.

    Attributes:
        port: Port on which the server listens. If port 0 was requested, it is the one that the system chose.
        lost: Number of dropped results, summed over clients.
        trouble: Temporary problem: why new clients currently cannot connect; empty if they can.
        problem: Error that ended the sink for good; None without one.
    """

    def __init__(self, loop: Loop, host: str, port: int, token: str | None = None) -> None:
        """Start the server and subscribe to the loop.

        Args:
            loop: Loop whose results are sent.
            host: Address to bind.
            port: Port to bind; 0 lets the system choose.
            token: Secret that clients must send if `host` is not loopback: `Authorization: Bearer TOKEN`, or the query
                `?token=TOKEN`.

        Raises:
            UsageError: If other computers can reach the address, and there is no token of at least 16 characters.
            PoseError: If the address cannot be bound, or aiohttp is not installed.
        """
        check_token("ws", host, token)
        self._token = None if is_loopback(host) else token
        try:
            from aiohttp import web
        except ImportError as error:
            raise PoseError("--ws needs aiohttp: pip install 'pose-run[webcam]'") from error
        self._web = web
        self._clients: dict[web.WebSocketResponse, Mailbox[list[str]]] = {}
        self._count_lock = threading.Lock()  # guards counters shared by the server and the subscriber
        self._lost = 0  # results lost by clients that have disconnected, and by the sink for each client
        self._bodies = RigidBodies()
        self._dropped_before = 0  # results dropped by the sink
        self._exhausted_at = -REJECTION_NOTICE_SECONDS  # last time without resources for a connection
        self._events = asyncio.new_event_loop()
        self._stack = AsyncExitStack()
        self._ended = asyncio.Event()
        try:
            self.port: int = self._events.run_until_complete(self._listen(host, port))
        except OSError as error:
            self._events.close()
            raise PoseError(f"--ws: cannot bind {host}:{port}: {error.strerror}") from error
        self._thread = threading.Thread(target=self._run, name="websocket", daemon=True)
        self._thread.start()
        self._constructed = threading.Event()
        self._subscriber = Subscriber(
            loop, self._send, maxlen=QUEUE_CAPACITY, after=self._disconnect_clients, wanted="all"
        )
        self._constructed.set()

    @property
    def problem(self) -> str | None:
        """Error that ended the sink for good; None without one."""
        return self._subscriber.problem

    @property
    def lost(self) -> int:
        """Number of results dropped because clients read too slowly, summed over clients."""
        with self._count_lock:
            return self._lost + sum(box.dropped for box in self._clients.values())

    @property
    def trouble(self) -> str:
        """Temporary problem: why new clients currently cannot connect; empty if they can."""
        if monotonic() - self._exhausted_at < REJECTION_NOTICE_SECONDS:
            return "no client can connect: too many open files"
        return ""

    async def _listen(self, host: str, port: int) -> int:
        from pose.live.listener import listening

        app = self._web.Application()
        app.router.add_get("/{path:.*}", self._serve)
        return await self._stack.enter_async_context(listening(app, host, port, exhausted=self._record_exhaustion))

    def _run(self) -> None:
        self._events.run_until_complete(self._until_ended())
        self._events.run_until_complete(self._events.shutdown_asyncgens())
        self._events.close()

    async def _until_ended(self) -> None:
        await self._ended.wait()
        await self._stack.aclose()

    def _record_exhaustion(self, reason: str) -> None:
        """Store the time at which the system had no resources for another connection."""
        self._exhausted_at = monotonic()

    def _send(self, live: LiveResult) -> None:
        self._constructed.wait()  # a running loop may call this before the constructor has set the subscriber
        texts, clients = messages(live, self._bodies), list(self._clients.values())
        before, self._dropped_before = self._dropped_before, self._subscriber.dropped
        with self._count_lock:
            self._lost += (self._dropped_before - before) * len(clients)
        for mailbox in clients:
            mailbox.put(texts)

    async def _serve(self, request: "web.Request") -> "web.WebSocketResponse":
        """Serve one client from its handshake to its last message."""
        origin = request.headers.get("Origin")
        if origin is not None and not ORIGIN.fullmatch(origin):
            raise self._web.HTTPForbidden(text="only pages of this computer may connect")
        if self._token is not None and not same_secret(_token_of(request), self._token):
            raise self._web.HTTPUnauthorized(text="the token is missing or wrong")
        client = self._web.WebSocketResponse(
            heartbeat=HEARTBEAT_SECONDS, compress=False, max_msg_size=1024, timeout=CLOSE_SECONDS
        )
        await client.prepare(request)
        if len(self._clients) >= MAX_CLIENTS:
            await client.close(code=1013, message=b"too many clients")
            return client
        if request.transport is not None:  # small buffer: the system's default holds minutes of old poses
            request.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES
            )
        woken = asyncio.Event()
        mailbox: Mailbox[list[str]] = Mailbox(QUEUE_CAPACITY, lambda: self._call(woken.set))
        with self._count_lock:
            self._clients[client] = mailbox
        reading = asyncio.create_task(_read_to_end(client, mailbox))
        try:
            while True:
                is_last = mailbox.closed  # read before the items, so that none is missed
                while (texts := mailbox.take()) is not None:
                    for text in texts:
                        await client.send_str(text)
                if is_last:
                    break
                await woken.wait()
                woken.clear()
            await client.close(code=1001, message=b"the source has ended")
        except ConnectionError:
            pass  # the client left during the send
        finally:
            reading.cancel()
            self._forget(client)
        return client

    def _forget(self, client: "web.WebSocketResponse") -> None:
        with self._count_lock:
            self._lost += self._clients.pop(client).dropped

    def _call(self, callback: Callable[[], object]) -> None:
        """Run a callback in the thread of the server. If the server has ended, do nothing."""
        with suppress(RuntimeError):
            self._events.call_soon_threadsafe(callback)

    def _disconnect_clients(self) -> None:
        """Send the waiting messages to the clients, and end the server."""
        for mailbox in list(self._clients.values()):
            mailbox.close()
        self._call(self._ended.set)
        self._thread.join(10 * CLOSE_SECONDS)

    def close(self) -> None:
        """Stop the server. This takes a few seconds at most, even if clients do not respond."""
        self._subscriber.close()


def _token_of(request: "web.Request") -> str:
    """Return the token of a request; empty without one."""
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else request.query.get("token", "")


async def _read_to_end(client: "web.WebSocketResponse", mailbox: Mailbox[list[str]]) -> None:
    """Ignore the messages of a client until it disconnects, then close its mailbox. aiohttp answers pings meanwhile."""
    async for _ in client:
        pass
    mailbox.close()
