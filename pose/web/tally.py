"""What strangers do to a server, in one line a minute however much it is."""

import asyncio
import logging
from collections import Counter

SETTLE_SECONDS = 1.0  # from the first event to its line, so that one of a thousand is not alone in it
LINE_SECONDS = 60.0
LONGEST = 200  # characters of one event

_LOG = logging.getLogger("pose.web")


class Tally:
    """Counts events by what happened. Belongs to a running event loop."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._said = float("-inf")
        self._timer: asyncio.TimerHandle | None = None

    def count(self, what: str) -> None:
        """what: in the words of the line, such as "closed before a whole request came"."""
        self._counts[what[:LONGEST]] += 1
        if self._timer is None:
            events = asyncio.get_running_loop()
            when = max(events.time() + SETTLE_SECONDS, self._said + LINE_SECONDS)
            self._timer = events.call_at(when, self._say)

    def _say(self) -> None:
        self._timer = None
        self._said = asyncio.get_running_loop().time()
        most = self._counts.most_common(5)
        rest = self._counts.total() - sum(number for _, number in most)
        words = [f"{number} {what}" for what, number in most] + ([f"{rest} others"] if rest else [])
        self._counts.clear()
        _LOG.warning("connections since the last such line: %s", "; ".join(words))

    def close(self) -> None:
        """Say what has not been said."""
        if self._timer is not None:
            self._timer.cancel()
            self._say()
