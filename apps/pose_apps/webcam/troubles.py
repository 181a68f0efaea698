"""Log of the problems of a live run. Each problem is printed when it starts, and kept for the report."""

import sys

MOST_KEPT = 100


class Troubles:
    """Log of the problems of a live run.

    Attributes:
        kept: Latest problems, as printed.
    """

    def __init__(self) -> None:
        self.kept: list[str] = []
        self._now: dict[str, str] = {}
        self._away: dict[str, bool] = {}

    def look(self, what: str, trouble: str, lost: int | None = None) -> None:
        """Print the problem of a source or sink if it is new, or a note if its previous problem is resolved.

        Args:
            what: Name of the source or sink.
            trouble: Current problem; empty without one.
            lost: Number of lost messages of a sink; None for a source.
        """
        trouble, is_away, _ = trouble.partition(", reconnecting")
        before, self._now[what] = self._now.get(what, ""), trouble
        was_away, self._away[what] = self._away.get(what, lost is not None), bool(is_away) or lost is not None
        if trouble and trouble != before:
            line = trouble if what in trouble else f"{what}: {trouble}"
            self.kept = [*self.kept[1 - MOST_KEPT :], line]
            print(f"warning: {line}", file=sys.stderr, flush=True)
        elif before and not trouble and was_away:  # other messages of a source, such as a changed size, simply end
            words = "is back" if lost is None else f"continues; {lost} lost"
            print(f"note: {what} {words}", file=sys.stderr, flush=True)
