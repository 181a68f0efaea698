"""Errors meant for people: one line that says what was wrong, with which file or option, and what to do."""


class PoseError(Exception):
    """A failure the user can do something about. Commands print it as one line and exit with `exit_code`."""

    exit_code = 1


class UsageError(PoseError):
    """The command was called wrongly: an unknown option, a value out of range, a file that is not there."""

    exit_code = 2


class PoseWarning(UserWarning):
    """Something that is hardly what the user means. Commands print it as one line and go on."""
