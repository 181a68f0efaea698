"""Live poses as datagrams."""

import socket

from pose.errors import PoseError, UsageError
from pose.live.loop import LiveLoop
from pose.live.messages import messages
from pose.live.result import LiveResult
from pose.live.subscriber import WAITING, Subscriber

LOOPBACK = "127.0.0.1"


def read_address(option: str, text: str, default_host: str | None = None) -> tuple[str, int]:
    """HOST and PORT of `HOST:PORT`, or of `PORT` alone where there is a default host. Raises UsageError."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or default_host or ""
    if not host or not port.isdecimal() or int(port) > 65535:
        form = "HOST:PORT" if default_host is None else "[HOST:]PORT"
        raise UsageError(f"--{option}: {text!r} is no {form}")
    return host, int(port)


def find_receiver(host: str, port: int) -> tuple[socket.AddressFamily, tuple[object, ...]]:
    """The family and address that datagrams for `host` go to.

    Raises PoseError when the host is unknown, UsageError when nothing can be sent there: to port 0, or by broadcast.
    """
    if port == 0:
        raise UsageError("--udp: port 0 is no receiver's; name the port at which it listens")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    except OSError as error:
        raise PoseError(f"--udp: cannot find {host}: {error.strerror}") from error
    with socket.socket(family, kind) as probe:
        try:
            probe.connect(address)  # sends nothing
        except PermissionError as error:
            raise UsageError(f"--udp: {host} is a broadcast address; name one receiver") from error
        except OSError:
            pass  # no way there now, but perhaps later
    return family, address


class UdpSink:
    """Sends every message as a datagram.

    lost: messages that could not be sent, or came too fast. trouble: why they are being lost now, empty while all is
    well. problem: why it gave up, None while it did not.
    """

    def __init__(self, loop: LiveLoop, host: str, port: int) -> None:
        """Raises what `find_receiver` raises."""
        family, self._address = find_receiver(host, port)
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._refused = 0
        self.trouble = ""
        self._subscriber = Subscriber(loop, self._send, maxlen=WAITING, after=self._socket.close, wanted="all")

    @property
    def problem(self) -> str | None:
        return self._subscriber.problem

    @property
    def lost(self) -> int:
        return self._refused + self._subscriber.dropped

    def _send(self, live: LiveResult) -> None:
        trouble = ""
        for message in messages(live):
            try:
                self._socket.sendto(message.encode(), self._address)
            except OSError as error:  # such as a network that is away for a moment
                self._refused += 1
                trouble = (error.strerror or str(error)).lower()
        self.trouble = trouble

    def close(self) -> None:
        self._subscriber.close()
