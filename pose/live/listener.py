"""HTTP server for aiohttp applications, with limits for a small server and without log entries for malformed
requests.
"""

import asyncio
import errno
import logging
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from weakref import WeakSet

from aiohttp import web
from aiohttp.http import HttpProcessingError

IDLE_SECONDS = 10.0  # after which a connection without a complete request is closed
MAX_CONNECTIONS = 256  # above it, connections without a request in progress are closed
SHUTDOWN_SECONDS = 2.0
NO_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# Errors of clients, and what aiohttp raises for a response that completes while the server stops.
_CLIENT_ERRORS = (HttpProcessingError, ConnectionError, asyncio.InvalidStateError)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_LOG = logging.getLogger("pose.live")
_REQUESTS = logging.getLogger("pose.live.requests")


def _is_server_error(record: logging.LogRecord) -> bool:
    """Return whether a log record reports an error of the server, not of a client."""
    error = record.exc_info[1] if record.exc_info else None
    aborted = isinstance(error, RuntimeError) and str(error) == "Transport is closing"  # asyncio, during a download
    return not (aborted or isinstance(error, _CLIENT_ERRORS))


_REQUESTS.addFilter(_is_server_error)


@asynccontextmanager
async def listening(
    app: web.Application,
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | None = None,
    exhausted: Callable[[str], object] = lambda reason: _LOG.warning(
        "no further connection can be accepted: %s", reason
    ),
) -> AsyncIterator[int]:
    """Serve `app` within this context, and yield the port; port 0 lets the system choose."""
    # `exhausted` is called with the reason if the system has no resources for another connection, for example no file
    # descriptors. asyncio tries again after a second.
    limiter = _ConnectionLimiter()
    app.middlewares.insert(0, limiter.middleware)
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=_REQUESTS,
        keepalive_timeout=IDLE_SECONDS,
        lingering_time=SHUTDOWN_SECONDS,
        auto_decompress=False,
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    await runner.setup()
    assert runner.server is not None
    events = asyncio.get_running_loop()
    before = events.get_exception_handler()
    server: asyncio.Server | None = None

    def report(events: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        closed = server is not None and not server.is_serving()
        if isinstance(error, OSError) and error.errno in NO_RESOURCES:
            exhausted((error.strerror or str(error)).lower())
        elif not (closed and isinstance(error, ValueError)):  # asyncio retries to accept with the closed socket
            events.default_exception_handler(context)

    events.set_exception_handler(report)
    try:
        try:
            server = await events.create_server(
                partial(limiter.connection, runner.server),
                host or None,
                port,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else IDLE_SECONDS,
            )
        except OSError as error:
            number = error.errno or 0  # asyncio prefixes the system's message
            reason = os.strerror(number) if number > 0 else error.strerror or str(error)
            raise OSError(number, reason.lower()) from error
        yield int(server.sockets[0].getsockname()[1])
    finally:
        if server is not None:
            server.close()
        await runner.cleanup()
        limiter.abort()
        await asyncio.sleep(0)  # lets transports close their sockets
        events.set_exception_handler(before)


class _ConnectionLimiter:
    """Limiter of connections, which knows those with a request in progress."""

    def __init__(self) -> None:
        self._busy: set[web.RequestHandler] = set()
        self._transports: WeakSet[asyncio.WriteTransport] = WeakSet()

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Record that a connection is busy during its request."""
        self._busy.add(request.protocol)
        if isinstance(request.transport, asyncio.WriteTransport):
            self._transports.add(request.transport)
        try:
            return await handler(request)
        finally:
            self._busy.discard(request.protocol)

    def connection(self, server: web.Server) -> web.RequestHandler:
        """Return the protocol object of a new connection; if there are too many, close idle ones first."""
        if len(server.connections) >= MAX_CONNECTIONS:
            for connection in server.connections:
                if connection not in self._busy:
                    connection.force_close()
        return server()

    def abort(self) -> None:
        """Close the connections of all clients, including those that do not read the end of their response."""
        for transport in self._transports:
            transport.abort()
