"""Runs an aiohttp application with the limits of a small server, and without a log line for each malformed request."""

import asyncio
import errno
import logging
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.http import HttpProcessingError

from pose.errors import PoseError

IDLE_SECONDS = 10.0  # a connection without a complete request is closed after so long
SHUTDOWN_SECONDS = 2.0
NO_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
# Mistakes of clients, and what aiohttp raises for an answer that completes while the server stops.
_NOT_OURS = (HttpProcessingError, ConnectionError, asyncio.InvalidStateError)

_LOG = logging.getLogger("pose.web")
_REQUESTS = logging.getLogger("pose.web.requests")


def _is_ours(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], _NOT_OURS))


_REQUESTS.addFilter(_is_ours)


@asynccontextmanager
async def listening(app: web.Application, host: str, port: int, tls: ssl.SSLContext | None) -> AsyncIterator[int]:
    """Serve `app` within this context; yields the port, of use where `port` is 0. Raises PoseError if it cannot."""
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
    events = asyncio.get_running_loop()
    before = events.get_exception_handler()
    events.set_exception_handler(_report)
    try:
        try:
            await web.TCPSite(runner, host, port, ssl_context=tls).start()
        except OSError as error:
            number = error.errno or 0  # asyncio puts a sentence of its own before the words of the system
            words = os.strerror(number) if number > 0 else error.strerror or str(error)
            advice = "choose another --port (0 takes a free one)"
            raise PoseError(f"cannot listen at {host}, port {port}: {words.lower()}; {advice}") from error
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
        events.set_exception_handler(before)


def _report(events: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """One line where the system has no resources for another connection; asyncio tries again after a second."""
    error = context.get("exception")
    if isinstance(error, OSError) and error.errno in NO_RESOURCES:
        _LOG.warning("no further connection can be accepted: %s", (error.strerror or str(error)).lower())
    else:
        events.default_exception_handler(context)
