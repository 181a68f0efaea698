"""Open Sound Control over UDP: a socket without receiver, and bundles of messages."""

import socket
from typing import Any

from pose.errors import PoseError, UsageError
from pose.live.links.base import Address

Message = tuple[str, tuple[int | float | str, ...]]


class OscSocket:
    """Socket that sends OSC bundles to one host. Nothing waits for a receiver."""

    def __init__(self, address: Address) -> None:
        """Find the host.

        Raises:
            PoseError: If the host is unknown.
            UsageError: For a broadcast address.
        """
        from pythonosc import osc_bundle_builder, osc_message_builder

        self._bundles: Any = osc_bundle_builder
        self._messages: Any = osc_message_builder
        try:
            found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM)[0]
        except OSError as error:
            raise PoseError(f"{address.option}: cannot find {address.host}: {error.strerror}") from error
        self._place: tuple[Any, ...] = found[4]
        self._socket = socket.socket(found[0], socket.SOCK_DGRAM)
        try:
            self._socket.sendto(b"", self._place)
        except PermissionError as error:
            self._socket.close()
            raise UsageError(f"{address.option}: {address.host} is a broadcast address; name one receiver") from error
        except OSError:
            pass  # the network is unreachable now, but may come back
        self._socket.setblocking(False)

    def send(self, messages: list[Message], shift: int = 0) -> None:
        """Send messages as one bundle, to the port `shift` above that of the address."""
        bundle = self._bundles.OscBundleBuilder(self._bundles.IMMEDIATELY)
        for address, values in messages:
            message = self._messages.OscMessageBuilder(address)
            for value in values:
                kind = "s" if isinstance(value, str) else "i" if isinstance(value, int) else "f"
                message.add_arg(value, kind)
            bundle.add_content(message.build())
        host, port, *rest = self._place
        self._socket.sendto(bundle.build().dgram, (host, int(port) + shift, *rest))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
