"""Errors for users. Each message is one line that states the problem, the file or option, and the remedy."""

import re

# One address: the scheme, and all that follows up to white space or the next address.
_ADDRESS = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]+:[/\\]{1,2})((?:(?![\s,;]?[A-Za-z][A-Za-z0-9+.-]+:[/\\])\S)+)")
_AFTER = re.compile(r"[\"'.,:;)\]}]*$")  # punctuation of the sentence after an address


def without_credentials(text: str) -> str:
    """Return a text whose addresses lack user name, password, query and fragment, for all that is shown or stored."""
    return _ADDRESS.sub(_address, text) if ":/" in text or ":\\" in text else text


def _address(found: re.Match[str]) -> str:
    scheme, rest = found[1], found[2]
    after = _AFTER.search(rest)
    end = after[0] if after is not None and re.search(r"[?#]", rest) else ""
    place = re.split(r"[?#]", rest, maxsplit=1)[0]
    host, slash, path = place.partition("/")
    if re.search(r":(?!\d*$)", host.rpartition("@")[2]) and "@" in path:  # a password with a slash
        host, slash, path = path.rpartition("@")[2].partition("/")
    return f"{scheme}{host.rpartition('@')[2]}{slash}{path}{end}"


class PoseError(Exception):
    """A failure that the user can act on. Commands print it as one line and exit with `exit_code`."""

    exit_code = 1

    def __init__(self, *details: object) -> None:
        super().__init__(*(without_credentials(one) if isinstance(one, str) else one for one in details))


class UsageError(PoseError):
    """An invalid call: an unknown option, a value out of range, a missing file."""

    exit_code = 2


class PoseWarning(UserWarning):
    """A likely mistake of the user. Commands print it as one line and continue."""
