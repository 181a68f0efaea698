"""Safe display of untrusted text (file names, content of files, server responses) in terminals and HTML."""

import html
import unicodedata

from pose.errors import without_credentials

MAX_CHARS = 400  # maximum number of characters of a text
MAX_ERROR_CHARS = 200  # maximum number of characters of an exception's message
# Cc: control characters, which move the cursor, colour or clear a terminal. Cf: invisible ones, some of which change
# the direction of text. Cs: lone surrogates, which cannot be encoded. Zl, Zp: line ends. Co, Cn: undefined.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"})


def shown(text: object, max_chars: int = MAX_CHARS) -> str:
    r"""Return one line that any terminal and any Unicode encoding can display, without passwords of addresses.

    Invisible characters become Python escapes such as ``\x1b``, and line ends become spaces. Text beyond `max_chars`
    characters is replaced by an ellipsis.
    """
    whole = without_credentials(str(text))
    line = " ".join(filter(None, map(str.strip, whole[: max_chars + 1].splitlines())))
    line = line[: max_chars - 3] + "..." if len(whole) > max_chars else line
    return "".join(map(_visible, line))


def in_brief(error: BaseException) -> str:
    """Return the message of an exception, shortened by `shown`, or the exception's type if it has no message."""
    return shown(" ".join(str(error).split()) or type(error).__name__, MAX_ERROR_CHARS)


def shown_in_html(text: object, max_chars: int = MAX_CHARS) -> str:
    """Return `shown(text, max_chars)`, escaped for the text of an HTML element or a quoted attribute."""
    return html.escape(shown(text, max_chars), quote=True)


def in_utf8(text: str) -> str:
    r"""Return a text that can be encoded as UTF-8, in which escapes such as ``\udcff`` replace lone surrogates.

    Python represents file names that are not valid UTF-8 with lone surrogates.
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
