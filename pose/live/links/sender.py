"""Links of a run as sinks: one thread prepares the frames, and each link has a bounded queue and a thread."""

import threading

from pose.live.links.base import LinkSender
from pose.live.links.frames import FrameBuilder, LinkFrame
from pose.live.links.table import LINKS, parse_links
from pose.live.mailbox import Mailbox
from pose.live.result import LiveResult
from pose.live.subscriber import JOIN_SECONDS, Publisher, Subscriber


class LinkSink:
    """Sink that sends frames by one link.

    Attributes:
        lost: Number of frames that could not be sent, plus those dropped because the link is too slow.
        trouble: Temporary problem: why the last frame could not be sent; empty if it was.
        problem: Error that ended the link for good; None without one.
    """

    def __init__(self, name: str, link: LinkSender, capacity: int) -> None:
        """Start the thread of the link."""
        self.name = name
        self._error: str | None = None
        self.source: Subscriber | None = None  # thread that prepares the frames, set before the first frame
        self._link = link
        self._unsent, self._failure = 0, ""
        self.mailbox: Mailbox[LinkFrame] = Mailbox(capacity)
        self._thread = threading.Thread(target=self._run, name=f"link {name}", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Number of frames that could not be sent, plus those dropped because the link is too slow."""
        return self._unsent + self.mailbox.dropped + (0 if self.source is None else self.source.dropped)

    @property
    def trouble(self) -> str:
        """Temporary problem: why the last frame could not be sent; empty if it was."""
        return self._failure or self._link.trouble

    @property
    def problem(self) -> str | None:
        """Error that ended the link, or the preparation of frames, for good; None without one."""
        return self._error or (None if self.source is None else self.source.problem)

    def close(self) -> None:
        """Send the queued frames and release the link; this ends all links of the run. May be called twice."""
        if self.source is not None:
            self.source.close()
        self.mailbox.close()
        self._thread.join(JOIN_SECONDS)

    def _run(self) -> None:
        try:
            for frame in self.mailbox:
                self._send(frame)
        except Exception as error:  # a failing link must not affect the others
            self._stopped(error)
        finally:
            self.mailbox.close()
            try:
                self._link.close()
            except Exception as error:
                self._stopped(error)

    def _send(self, frame: LinkFrame) -> None:
        try:
            self._link.send(frame)
            self._failure = ""
        except OSError as error:  # for example while the network is down
            self._unsent += 1
            self._failure = (error.strerror or str(error)).lower()

    def _stopped(self, error: Exception) -> None:
        self._error = self._error or str(error) or type(error).__name__


def check_links(text: str) -> None:
    """Check the value of `--send` before networks are loaded.

    Raises:
        UsageError: If it is invalid.
        PoseError: If a module is not installed.
    """
    parse_links(text)


def open_links(publisher: Publisher, text: str) -> list[LinkSink]:
    """Open the links of `--send` on a live loop or a playback. They end with it, or when one is closed.

    Raises:
        UsageError: If the text is invalid.
        PoseError: If a link cannot be opened, for example because its port is in use.
    """
    opened: list[tuple[str, LinkSender]] = []
    try:
        for name, address in parse_links(text):
            opened.append((name, LINKS[name].open(address)))
    except BaseException:
        for _, link in opened:
            link.close()
        raise
    sinks = [LinkSink(name, link, LINKS[name].capacity) for name, link in opened]
    builder = FrameBuilder()

    def work(live: LiveResult) -> None:
        frame = builder.build(live)
        for sink in sinks:
            sink.mailbox.put(frame)

    def ended() -> None:
        for sink in sinks:
            sink.mailbox.close()

    capacity = max(LINKS[name].capacity for name, _ in opened)
    source = Subscriber(publisher, work, maxlen=capacity, after=ended)
    for sink in sinks:
        sink.source = source
    return sinks
