"""Where live poses can be sent: UDP, WebSocket clients, the Rerun viewer. Each runs in threads of its own."""

import re
import socket
import threading
from contextlib import suppress
from typing import Any

from pose.errors import PoseError, UsageError
from pose.live.loop import LiveLoop
from pose.live.mailbox import Mailbox
from pose.live.messages import messages
from pose.live.result import LiveResult
from pose.live.subscriber import Subscriber

LOOPBACK = "127.0.0.1"
MOST_CLIENTS = 16
WAITING_FRAMES = 4  # of a client that reads slowly
ALIVE_SECONDS = 1.0
# Programs send no Origin. A page of another site must not read poses behind the user's back; one of this computer may.
ORIGINS = (None, re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?"))


def read_address(option: str, text: str, default_host: str | None = None) -> tuple[str, int]:
    """HOST and PORT of `HOST:PORT`, or of `PORT` alone where there is a default host. Raises UsageError."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or default_host or ""
    if not host or not port.isdecimal() or int(port) > 65535:
        form = "HOST:PORT" if default_host is None else "[HOST:]PORT"
        raise UsageError(f"--{option}: {text!r} is no {form}")
    return host, int(port)


class UdpSink:
    """Sends every message as a datagram. problem: why it cannot, None while all is well."""

    def __init__(self, loop: LiveLoop, host: str, port: int) -> None:
        """Raises PoseError when the host is unknown."""
        try:
            family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        except OSError as error:
            raise PoseError(f"--udp: cannot find {host}: {error.strerror}") from error
        self._socket, self._address = socket.socket(family, kind), address
        self._subscriber = Subscriber(loop, self._send, after=self._socket.close)

    @property
    def problem(self) -> str | None:
        return self._subscriber.problem

    def _send(self, live: LiveResult) -> None:
        for message in messages(live):
            self._socket.sendto(message.encode(), self._address)

    def close(self) -> None:
        self._subscriber.close()


class WebSocketSink:
    """Serves every message to each WebSocket client; one that reads slowly misses frames, and slows nobody.

    port: the one that is bound, also where 0 was asked for.
    """

    def __init__(self, loop: LiveLoop, host: str, port: int) -> None:
        """Raises PoseError when the address cannot be bound or the library is missing."""
        try:
            from websockets.sync.server import serve
        except ImportError as error:
            raise PoseError("--ws needs websockets: pip install 'pose-run[webcam]'") from error
        self._clients: list[Mailbox[list[str]]] = []
        self._lock = threading.Lock()
        try:
            self._server = serve(self._client, host, port, origins=ORIGINS, compression=None, max_size=1024)
        except OSError as error:
            raise PoseError(f"--ws: cannot bind {host}:{port}: {(error.strerror or str(error)).lower()}") from error
        self.port: int = self._server.socket.getsockname()[1]
        threading.Thread(target=self._server.serve_forever, name="websocket", daemon=True).start()
        self._subscriber = Subscriber(loop, self._send, after=self._hang_up)

    @property
    def problem(self) -> str | None:
        return self._subscriber.problem

    def _send(self, live: LiveResult) -> None:
        texts = messages(live)
        with self._lock:
            for client in self._clients:
                client.put(texts)

    def _client(self, connection: Any) -> None:
        """One client, in a thread of its own, from its first to its last message."""
        from websockets.exceptions import ConnectionClosed

        mailbox: Mailbox[list[str]] = Mailbox(WAITING_FRAMES)
        with self._lock:
            if len(self._clients) >= MOST_CLIENTS:
                return connection.close(1013, "too many clients")
            self._clients.append(mailbox)
        try:
            while (texts := mailbox.get(ALIVE_SECONDS)) is not None or not mailbox.closed:
                for text in texts or []:
                    connection.send(text)
                if texts is None:  # nothing to send: is anybody there?
                    with suppress(TimeoutError):
                        connection.recv(timeout=0)
        except ConnectionClosed:
            pass
        finally:
            with self._lock:
                self._clients.remove(mailbox)

    def _hang_up(self) -> None:
        with self._lock:
            for client in self._clients:
                client.close()
        self._server.shutdown()

    def close(self) -> None:
        self._subscriber.close()
