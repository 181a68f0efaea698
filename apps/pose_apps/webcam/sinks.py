"""Options and construction of sinks, which send or store live poses in addition to the display.

To add a sink, implement `Sink` in a new module of `pose.live`. Then add an option to `SinkConfig`, and open the sink in
`open_sinks`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pose.utils.options import option

if TYPE_CHECKING:
    from pose.live import Loop


SEND_HELP = (
    "send poses to vmc, vrchat, osc, lsl, mqtt, mcap, foxglove or camera, such as vmc=192.168.1.5:39539 (extra [links])"
)


class Sink(Protocol):
    """Protocol of an output that sends or shows the results of a live loop until it is closed."""

    @property
    def lost(self) -> int:
        """Number of messages or frames that could not be sent or shown."""
        ...

    @property
    def trouble(self) -> str:
        """Reason why results are currently lost; empty if none are lost."""
        ...

    @property
    def problem(self) -> str | None:
        """Reason why the sink stopped; None while it runs."""
        ...

    def close(self) -> None:
        """Send the results that are still waiting, and release the resources."""
        ...


@dataclass(frozen=True, kw_only=True)  # no slots, because of multiple inheritance
class SinkConfig:
    """Options of the sinks. All sinks are off by default."""

    udp: str | None = option(None, "send each pose as a JSON message to HOST:PORT")
    ws: str | None = option(
        None,
        "serve each pose as JSON to WebSocket clients at [HOST:]PORT; see --host",
    )
    rerun: bool = option(False, "show poses in Rerun (extra [rerun])")
    send: str | None = option(None, SEND_HELP, metavar="NAME[=ADDRESS],...")


def check_sinks(config: SinkConfig, token: str | None) -> None:
    """Check the addresses of the sinks before networks are loaded.

    Args:
        config: Options of the sinks.
        token: Value of `--token`.

    Raises:
        PoseError: If an address is invalid, or needs a token.
    """
    from pose.live.access import check_token, token_from
    from pose.live.sinks import LOOPBACK, find_receiver, read_address

    if config.udp is not None:
        find_receiver(*read_address("udp", config.udp))
    if config.send is not None:
        from pose.live.links import check_links

        check_links(config.send)
    if config.ws is not None:
        check_token("ws", read_address("ws", config.ws, LOOPBACK)[0], token_from(token))


def open_sinks(loop: "Loop", config: SinkConfig, token: str | None) -> Iterator[tuple[str, Sink]]:
    """Open the requested sinks, and yield each with the name of its option."""
    from pose.live.sinks import LOOPBACK, UdpSink, read_address

    if config.udp is not None:
        yield "--udp", UdpSink(loop, *read_address("udp", config.udp))
    if config.ws is not None:
        from pose.live.access import token_from
        from pose.live.websocket import WebSocketSink

        host, port = read_address("ws", config.ws, LOOPBACK)
        websocket = WebSocketSink(loop, host, port, token_from(token))
        print(f"poses at ws://{host}:{websocket.port}", flush=True)
        yield "--ws", websocket
    if config.rerun:
        from pose.live.rerun_sink import RerunSink

        yield "--rerun", RerunSink(loop)
    if config.send is not None:
        from pose.live.links import open_links

        for link in open_links(loop, config.send):
            yield f"--send {link.name}", link
