"""MCAP: a file of ROS 2 messages, for Foxglove, Rerun, `ros2 bag play` and others."""

from pathlib import Path
from typing import Any

from pose.errors import UsageError
from pose.live.links.base import Address, LinkKind
from pose.live.links.frames import LinkFrame
from pose.live.links.ros2 import RosEncoder
from pose.live.messages import clock


class McapLink:
    """Writer of one file."""

    trouble = ""

    def __init__(self, address: Address) -> None:
        """Create the file.

        Raises:
            UsageError: If the file exists or cannot be created.
        """
        from mcap.writer import Writer

        path = Path(address.path)
        try:
            self._file = path.open("xb")
        except FileExistsError as error:
            raise UsageError(f"{address.option}: {path} exists; name another file") from error
        except OSError as error:
            raise UsageError(f"{address.option}: cannot write {path}: {(error.strerror or '').lower()}") from error
        self._encoder = RosEncoder()
        self._writer: Any = Writer(self._file)
        self._writer.start(profile="ros2", library="pose-run")
        self._schemas: dict[str, int] = {}
        self._channels: dict[str, int] = {}
        self._sequence = 0

    def send(self, frame: LinkFrame) -> None:
        """Write the messages of a frame."""
        stamp = round(1e9 * clock(frame.captured))
        for message in self._encoder.messages(frame, stamp):
            self._writer.add_message(
                self._channel(message.topic, message.kind), stamp, message.data, stamp, self._sequence
            )
        self._sequence += 1

    def _channel(self, topic: str, kind: str) -> int:
        if kind not in self._schemas:
            definition = self._encoder.definition(kind).encode()
            self._schemas[kind] = self._writer.register_schema(kind, "ros2msg", definition)
        if topic not in self._channels:
            self._channels[topic] = self._writer.register_channel(topic, "cdr", self._schemas[kind])
        return self._channels[topic]

    def close(self) -> None:
        """Complete the file."""
        self._writer.finish()
        self._file.close()


KIND = LinkKind(McapLink, "a file of ROS 2 messages", "ros2", ("mcap", "rosbags"), path="", capacity=64)
