"""Foxglove: a WebSocket server of ROS 2 messages, for Foxglove and `foxglove_bridge` clients."""

from typing import Any

from pose.errors import PoseError
from pose.live.links.base import Address, LinkKind
from pose.live.links.frames import LinkFrame
from pose.live.links.ros2 import RosEncoder
from pose.live.messages import clock


class FoxgloveLink:
    """Server of one run. It drops messages of slow clients."""

    trouble = ""

    def __init__(self, address: Address) -> None:
        """Start the server.

        Raises:
            PoseError: If the port is in use.
        """
        import foxglove

        self._library: Any = foxglove
        self._context = foxglove.Context()
        self._encoder = RosEncoder()
        self._channels: dict[str, Any] = {}
        try:
            self._server: Any = foxglove.start_server(
                name="pose-run", host=address.host, port=address.port, context=self._context
            )
        except (OSError, RuntimeError) as error:
            place = f"{address.host}:{address.port}"
            why = str(error).removeprefix("FoxgloveError: ").lower()
            raise PoseError(f"{address.option}: cannot listen on {place}: {why}") from error

    def send(self, frame: LinkFrame) -> None:
        """Send the messages of a frame to all clients."""
        stamp = round(1e9 * clock(frame.captured))
        for message in self._encoder.messages(frame, stamp):
            if message.topic not in self._channels:
                schema = self._library.Schema(
                    name=message.kind, encoding="ros2msg", data=self._encoder.definition(message.kind).encode()
                )
                self._channels[message.topic] = self._library.Channel(
                    message.topic, schema=schema, message_encoding="cdr", context=self._context
                )
            self._channels[message.topic].log(message.data, log_time=stamp)

    def close(self) -> None:
        """Stop the server."""
        self._server.stop()


KIND = LinkKind(FoxgloveLink, "Foxglove (WebSocket)", "ros2", ("foxglove", "rosbags"), 8765, listens=True)
