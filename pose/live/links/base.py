"""What a link is: a receiver's protocol, its default address, and the object that sends frames."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pose.live.links.frames import LinkFrame


class LinkSender(Protocol):
    """Sender of frames in one protocol."""

    @property
    def trouble(self) -> str:
        """Temporary problem, such as a receiver that is absent; empty without one."""
        ...

    def send(self, frame: LinkFrame) -> None:
        """Send a frame without waiting for the receiver.

        Raises:
            OSError: If this frame could not be sent. The next one is tried again.
        """
        ...

    def close(self) -> None:
        """Release the resources."""
        ...


@dataclass(frozen=True, slots=True)
class Address:
    """Where a link sends to."""

    option: str  # name of the link as in the option, for messages: `--send vmc`
    host: str = ""
    port: int = 0
    path: str = ""  # file or device; empty for network links
    person: int | None = None  # id of the only person to send; None for all


@dataclass(frozen=True, slots=True)
class LinkKind:
    """A protocol that `--send` knows."""

    open: Callable[[Address], LinkSender]  # raises PoseError if the link cannot be opened
    about: str  # receivers, in a few words
    extra: str  # extra of this package that installs the modules
    modules: tuple[str, ...]  # modules that the link requires
    port: int = 0  # default port; 0 for links without one
    path: str | None = None  # default file or device, "" if none; None for network links
    takes_person: bool = False  # whether the address may choose a person, ADDRESS@ID
    listens: bool = False  # whether receivers connect to the link, instead of the reverse
    # Capacity of the queue, frames; when it is full, the oldest frame is dropped. Receivers that draw want the newest
    # frame, files all.
    capacity: int = 2
