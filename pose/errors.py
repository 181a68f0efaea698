"""Errors meant for people: one line that says what was wrong, with which file or option, and what to do."""


class PoseError(Exception):
    """A failure the user can do something about. Commands print it as one line and exit with `exit_code`."""

    exit_code = 1


class UsageError(PoseError):
    """The command was called wrongly: an unknown option, a value out of range, a file that is not there."""

    exit_code = 2


MOST_SAID = 200  # characters


def in_brief(error: BaseException) -> str:
    """What a library says was wrong, in one line that is not long: some quote the whole file."""
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= MOST_SAID else f"{said[: MOST_SAID - 3]}..."


class PoseWarning(UserWarning):
    """Something that is hardly what the user means. Commands print it as one line and go on."""
