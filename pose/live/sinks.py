"""Sender of live poses as UDP datagrams."""

import socket

from pose.errors import PoseError, UsageError
from pose.live.base import Loop
from pose.live.messages import messages
from pose.live.result import LiveResult
from pose.live.rigid import RigidBodies
from pose.live.subscriber import QUEUE_CAPACITY, Subscriber

LOOPBACK = "127.0.0.1"


def read_address(option: str, text: str, default_host: str | None = None) -> tuple[str, int]:
    """Parse `HOST:PORT`, or `PORT` if there is a default host, and return host and port.

    Raises:
        UsageError: If the text has another form, or the port is above 65535.
    """
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or default_host or ""
    if not host or not port.isdecimal() or int(port) > 65535:
        form = "HOST:PORT" if default_host is None else "[HOST:]PORT"
        raise UsageError(f"--{option}: invalid address {text!r}: expected {form}")
    return host, int(port)


def find_receiver(host: str, port: int) -> tuple[socket.AddressFamily, tuple[object, ...]]:
    """Return the address family and the socket address for UDP datagrams to a receiver.

    Raises:
        PoseError: If the host is unknown.
        UsageError: For port 0 or a broadcast address.
    """
    if port == 0:
        raise UsageError("--udp: port 0 is not valid; give the port on which the receiver listens")
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
            pass  # the network is unreachable now, but may come back
    return family, address


class UdpSink:
    """Sink that sends the results of a loop as JSON messages, each in one UDP datagram.

    Attributes:
        lost: Number of messages that could not be sent, plus the number of results dropped because sending is too slow.
        trouble: Temporary problem: why messages of the latest result could not be sent; empty if all were sent.
        problem: Error that ended the sink for good; None without one.
    """

    def __init__(self, loop: Loop, host: str, port: int) -> None:
        """Open the socket and subscribe to the loop.

        Raises:
            PoseError: If the host is unknown.
            UsageError: For port 0 or a broadcast address.
        """
        family, self._address = find_receiver(host, port)
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._unsent, self._bodies = 0, RigidBodies()
        self.trouble = ""
        self._subscriber = Subscriber(loop, self._send, maxlen=QUEUE_CAPACITY, after=self._socket.close, wanted="all")

    @property
    def problem(self) -> str | None:
        """Error that ended the sink for good; None without one."""
        return self._subscriber.problem

    @property
    def lost(self) -> int:
        """Number of messages that could not be sent, plus the number of results dropped because sending is too slow."""
        return self._unsent + self._subscriber.dropped

    def _send(self, live: LiveResult) -> None:
        trouble = ""
        for message in messages(live, self._bodies):
            try:
                self._socket.sendto(message.encode(), self._address)
            except OSError as error:  # for example while the network is down
                self._unsent += 1
                trouble = (error.strerror or str(error)).lower()
        self.trouble = trouble

    def close(self) -> None:
        """Send the queued results and close the socket."""
        self._subscriber.close()
