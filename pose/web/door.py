"""The way in: whoever asks is answered soon, and whoever holds a connection without asking makes room for others.

A connection is counted from the moment it is accepted, so also before its encryption has been agreed. When all places
are taken, the one that has waited longest for its guest to ask goes. So a flood of idle or half-sent requests costs its
makers their connections and nobody else's.
"""

import asyncio
import errno
import math
import socket
import ssl
import sys
import traceback
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.http import HttpProcessingError

from pose.web.guard import HEADERS
from pose.web.tally import Tally

MOST_CONNECTIONS = 256
PATIENCE = 10.0  # s for the encryption, for a whole request, and between two of them
TURN_SECONDS = 1.0  # between two looks at whose time is up
BREATH_SECONDS = 0.05  # to wait where the system gives no further connection
BACKLOG = 128
LINGER_SECONDS = 2.0  # for the rest of a body that nobody wants


class Visitor(web.RequestHandler):
    """One connection. Its answers carry our headers, those of the parser, too; its mistakes are counted, not printed.

    waiting: it is the guest's turn. deadline: when it is closed, s on the loop's clock.
    """

    def __init__(self, server: web.Server, door: "Door") -> None:
        loop = asyncio.get_running_loop()
        super().__init__(server, loop=loop, access_log=None, auto_decompress=False, lingering_time=LINGER_SECONDS)  # type: ignore[arg-type]
        self.entering: asyncio.Task[None] | None = None
        self._door = door
        self._line: asyncio.BaseTransport | None = None  # the base class lets go of its own before it is closed
        self._clock = loop.time
        self._spoke = False
        self.wait()

    def wait(self) -> None:
        """For its next request."""
        self.waiting, self._spoke = True, False
        self.deadline = self._clock() + PATIENCE

    def answer(self, seconds: float) -> None:
        """A request is whole; what is answered may take `seconds`."""
        self.waiting = False
        self.deadline = self._clock() + seconds

    @property
    def half(self) -> bool:
        """A request has begun and not ended."""
        return self.waiting and self._spoke

    @property
    def stays(self) -> bool:
        """It was granted all the time it wants."""
        return self.deadline == math.inf

    def end(self) -> None:
        """Close the connection now, whatever is under way."""
        if isinstance(self._line, asyncio.WriteTransport):
            self._line.abort()
        elif self.entering is not None:
            self.entering.cancel()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._line = transport
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._door.leave(self)

    def data_received(self, data: bytes) -> None:
        self._spoke = True
        super().data_received(data)

    async def finish_response(self, request: Any, resp: Any, start_time: Any) -> tuple[web.StreamResponse, bool]:
        try:
            return await super().finish_response(request, resp, start_time)
        finally:
            self.wait()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        response = super().handle_error(request, status, exc, message)
        response.headers.update(HEADERS)
        return response

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        error = kwargs.get("exc_info")
        if self._door.is_shut and isinstance(error, asyncio.InvalidStateError):
            return  # aiohttp's own: an answer was whole at the very end of the time that it had when the server ended
        self._door.tally.count(_mistake(error))


class Door:
    """Accepts connections for a server of aiohttp, `MOST_CONNECTIONS` at a time, until it `is_shut`."""

    def __init__(self, server: web.Server, tls: ssl.SSLContext | None) -> None:
        self.tally = Tally()
        self.is_shut = False
        self._server = server
        self._tls = tls
        self._most = _places()
        self._visitors: dict[Visitor, None] = {}
        self._listeners: list[socket.socket] = []
        self._work: list[asyncio.Task[None]] = []

    async def open(self, host: str, port: int) -> int:
        """Listen; the port, of use where `port` is 0. Raises OSError."""
        events = asyncio.get_running_loop()
        found = await events.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(found):
            try:
                listener = socket.create_server((address[0], port, *address[2:]), family=family, backlog=BACKLOG)
            except OSError as error:
                if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) and len(found) > 1:
                    continue  # a name with an IPv6 address on a machine without IPv6
                raise
            listener.setblocking(False)
            self._listeners.append(listener)
            port = listener.getsockname()[1]
        if not self._listeners:
            raise OSError(errno.EADDRNOTAVAIL, "no address of this computer")
        self._work = [asyncio.create_task(self._accept(listener)) for listener in self._listeners]
        self._work.append(asyncio.create_task(self._watch()))
        return port

    async def shut(self) -> None:
        """Accept nobody any more; those who are in stay."""
        self.is_shut = True
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        for listener in self._listeners:
            listener.close()

    async def empty(self) -> None:
        """Close what is still open."""
        entering = [visitor.entering for visitor in self._visitors if visitor.entering is not None]
        for visitor in list(self._visitors):
            visitor.end()
        await asyncio.gather(*entering, return_exceptions=True)
        self.tally.close()

    def leave(self, visitor: Visitor) -> None:
        """A connection is closed."""
        self._visitors.pop(visitor, None)

    async def _accept(self, listener: socket.socket) -> None:
        events = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await events.sock_accept(listener)
            except OSError as error:  # no descriptor is left, or who called has hung up
                self.tally.count(f"could not be accepted ({(error.strerror or str(error)).lower()})")
                self._make_room()
                await asyncio.sleep(BREATH_SECONDS)
                continue
            if len(self._visitors) >= self._most and not self._make_room():
                self.tally.count(f"turned away, since all {self._most} places are taken")
                sock.close()
            else:
                visitor = Visitor(self._server, self)
                self._visitors[visitor] = None
                visitor.entering = asyncio.create_task(self._let_in(visitor, sock))
            await asyncio.sleep(0)  # an accept that need not wait does not: others have their turn here

    async def _let_in(self, visitor: Visitor, sock: socket.socket) -> None:
        patience = None if self._tls is None else PATIENCE
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: visitor, sock, ssl=self._tls, ssl_handshake_timeout=patience
            )
        except (OSError, asyncio.CancelledError) as error:
            sock.close()
            self.leave(visitor)
            if isinstance(error, asyncio.CancelledError):
                raise
            self.tally.count("broke off before the encryption was agreed")
        finally:
            visitor.entering = None

    def _make_room(self) -> bool:
        """Close the connection that is least missed; whether there was one.

        Who waits for its guest goes before who is being answered; among them the one with the least time left.
        """
        leaving = [visitor for visitor in self._visitors if not visitor.stays]
        if not leaving:
            return False
        visitor = min(leaving, key=lambda visitor: (not visitor.waiting, visitor.deadline))
        self.tally.count("closed to make room")
        self._drop(visitor)
        return True

    def _drop(self, visitor: Visitor) -> None:
        self._visitors.pop(visitor, None)  # now, lest it be chosen again before the loop has closed it
        visitor.end()

    async def _watch(self) -> None:
        events = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(TURN_SECONDS)
            for visitor in [visitor for visitor in self._visitors if visitor.deadline < events.time()]:
                if visitor.half:
                    self.tally.count("closed before a whole request came")
                elif not visitor.waiting:
                    self.tally.count("closed, since they did not take their answer")
                self._drop(visitor)


def _mistake(error: object) -> str:
    """Whose it was: a guest's needs no more words, ours says where it is."""
    if isinstance(error, HttpProcessingError):
        return "sent what is no HTTP"
    if isinstance(error, ConnectionError):
        return "broke off"
    if not isinstance(error, BaseException):
        return "failed here"
    where = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f", {Path(frame.filename).name}, line {frame.lineno}" for frame in where)
    return f"failed here ({type(error).__name__}: {error}{place})"


def _places() -> int:
    """How many connections: no more than half the descriptors that this process may have."""
    if sys.platform == "win32":
        return MOST_CONNECTIONS
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if limit == resource.RLIM_INFINITY else max(1, min(MOST_CONNECTIONS, limit // 2))
