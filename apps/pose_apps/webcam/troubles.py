"""Troubles of a live run, said once on the terminal while they happen, and kept for the report."""

import sys

MOST_KEPT = 100


class Troubles:
    """kept: the last ones, as they were said."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self._now: dict[str, str] = {}

    def look(self, what: str, trouble: str, lost: int | None = None) -> None:
        """Say what is wrong with `what` now, if it was not wrong the last time, or that all is well again.

        lost: how much it lost so far.
        """
        trouble = trouble.partition(", reconnecting")[0]
        before, self._now[what] = self._now.get(what, ""), trouble
        if trouble == before:
            return
        line = trouble if what in trouble else f"{what}: {trouble or 'well again'}"
        if not trouble and lost is not None:
            line += f", {lost} lost"
        if trouble:
            self.kept = [*self.kept[1 - MOST_KEPT :], line]
        print(f"{'warning' if trouble else 'note'}: {line}", file=sys.stderr, flush=True)
