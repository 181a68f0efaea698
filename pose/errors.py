"""Errors for users. Each message is one line that states the problem, the file or option, and the remedy."""


class PoseError(Exception):
    """A failure that the user can act on. Commands print it as one line and exit with `exit_code`."""

    exit_code = 1


class UsageError(PoseError):
    """An invalid call: an unknown option, a value out of range, a missing file."""

    exit_code = 2


class PoseWarning(UserWarning):
    """A likely mistake of the user. Commands print it as one line and continue."""
