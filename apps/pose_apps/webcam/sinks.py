"""Outputs of live poses besides the display: their options and construction.

To add a sink, write a file in `pose/live` that implements `Sink`, and add an option and lines in `open_sinks` here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pose.options import option

if TYPE_CHECKING:
    from pose.live import Loop


class Sink(Protocol):
    """Receives a loop's results until it is closed."""

    @property
    def lost(self) -> int:
        """Number of lost messages or frames."""
        ...

    @property
    def trouble(self) -> str:
        """Why results are lost now; empty if none are."""
        ...

    @property
    def problem(self) -> str | None:
        """Why the sink stopped, or None."""
        ...

    def close(self) -> None:
        """Finish and release resources."""
        ...


@dataclass(frozen=True, kw_only=True)  # no slots, because of multiple inheritance
class SinkConfig:
    """The sinks; each is off by default."""

    udp: str | None = option(None, "send each pose as a JSON message to HOST:PORT")
    ws: str | None = option(None, "serve each pose as a JSON message to WebSocket clients at [HOST:]PORT")
    rerun: bool = option(False, "show poses in Rerun (extra [rerun])")


def check_sinks(config: SinkConfig) -> None:
    """Check the addresses before networks are loaded.

    Raises:
        PoseError: If one is invalid.
    """
    from pose.live.sinks import LOOPBACK, find_receiver, read_address

    if config.udp is not None:
        find_receiver(*read_address("udp", config.udp))
    if config.ws is not None:
        read_address("ws", config.ws, LOOPBACK)


def open_sinks(loop: "Loop", config: SinkConfig) -> Iterator[tuple[str, Sink]]:
    """Open the requested sinks; yields each with its option.

    Raises:
        PoseError: If one cannot be opened.
    """
    from pose.live.sinks import LOOPBACK, UdpSink, read_address

    if config.udp is not None:
        yield "--udp", UdpSink(loop, *read_address("udp", config.udp))
    if config.ws is not None:
        from pose.live.websocket import WebSocketSink

        host, port = read_address("ws", config.ws, LOOPBACK)
        websocket = WebSocketSink(loop, host, port)
        print(f"poses at ws://{host}:{websocket.port}", flush=True)
        yield "--ws", websocket
    if config.rerun:
        from pose.live.rerun_sink import RerunSink

        yield "--rerun", RerunSink(loop)
