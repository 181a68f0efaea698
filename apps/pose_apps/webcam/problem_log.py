"""Log of the problems of a live run. Each problem is printed when it starts, and kept for the report."""

import sys

MAX_LATEST = 100


class ProblemLog:
    """Log of the problems of a live run, with the latest 100."""

    def __init__(self) -> None:
        self.latest: list[str] = []  # printed problems, oldest first; at most the latest 100
        self._current: dict[str, str] = {}
        self._is_away: dict[str, bool] = {}

    def update(self, what: str, problem: str, lost: int | None = None) -> None:
        """Print the problem of a source or sink if it is new, or that its previous one is resolved."""
        problem, is_away, _ = problem.partition(", reconnecting")
        before, self._current[what] = self._current.get(what, ""), problem
        was_away, self._is_away[what] = self._is_away.get(what, lost is not None), bool(is_away) or lost is not None
        if problem and problem != before:
            line = problem if what in problem else f"{what}: {problem}"
            self.latest = [*self.latest[1 - MAX_LATEST :], line]
            print(f"warning: {line}", file=sys.stderr, flush=True)
        elif before and not problem and was_away:  # other messages of a source, such as a changed size, simply end
            words = "is back" if lost is None else f"continues; {lost} lost"
            print(f"note: {what} {words}", file=sys.stderr, flush=True)
