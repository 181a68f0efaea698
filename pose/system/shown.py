"""Text of anybody (file names, names in files, answers of servers) as it is shown in a terminal or in HTML."""

import html
import unicodedata

MOST = 400  # characters of one text
# Cc: control characters, with which a terminal moves, colours and clears. Cf: invisible ones, some of which turn the
# direction of writing. Cs: lone surrogates, which no encoding can write. Zl, Zp: line ends. Co, Cn: no character.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"})


def shown(text: object, most: int = MOST) -> str:
    r"""One line that any terminal and any encoding of Unicode can take.

    What is not visible becomes an escape as Python writes it, such as ``\x1b``; line ends become spaces, and what
    exceeds `most` characters an ellipsis.
    """
    whole = str(text)
    line = " ".join(filter(None, map(str.strip, whole[: most + 1].splitlines())))
    line = line[: most - 3] + "..." if len(whole) > most else line
    return "".join(map(_visible, line))


def shown_in_html(text: object, most: int = MOST) -> str:
    """The same for the text of an element or a quoted attribute of an HTML page."""
    return html.escape(shown(text, most), quote=True)


def in_utf8(text: str) -> str:
    r"""The same text with lone surrogates, as in names of files that are not UTF-8, as escapes such as ``\udcff``."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN:
        return character
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
