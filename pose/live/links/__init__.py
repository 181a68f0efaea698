"""Links: live poses in the protocols of other programs, `--send NAME[=ADDRESS],...`.

To add a link, implement `LinkSender` (`pose/live/links/base.py`) in a new module and add a line to `LINKS`. All links
of a run share one thread that prepares frames (`FrameBuilder`); each link has a queue and a thread of its own.
"""

from pose.live.links.sender import LinkSink, check_links, open_links

__all__ = ["LinkSink", "check_links", "open_links"]
