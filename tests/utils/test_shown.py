"""Untrusted text in terminals and HTML, and passwords that appear nowhere."""

import html
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pose.errors import PoseError, UsageError, without_credentials
from pose.utils.shown import MAX_CHARS, shown, shown_in_html

ANYTHING = st.text(st.characters(categories=None), max_size=2000)  # lone surrogates and unassigned ones too


@given(ANYTHING)
def test_shown_text_is_one_printable_line(text):
    said = shown(text)
    assert all(character.isprintable() or unicodedata.category(character) == "Zs" for character in said)
    assert len(said.encode("utf-8")) <= 40 * MAX_CHARS
    assert len(said.splitlines()) <= 1


@given(st.text(st.characters(categories=("L", "N", "P", "S")), max_size=MAX_CHARS))
def test_printable_text_is_unchanged(text):
    assert shown(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\x1b[2J\x1b]0;title\x07clip", r"\x1b[2J\x1b]0;title\x07clip"),
        ("one\r\ntwo\tthree\u2028four", r"one two\tthree four"),
        ("two  spaces.mp4", "two  spaces.mp4"),
        ("\udcff.mp4", r"\udcff.mp4"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\x9b31m", r"\x9b31m"),
        ("long " * 1000, ("long " * 1000)[: MAX_CHARS - 3] + "..."),
        (ValueError("bad\n\x00"), r"bad \x00"),
    ],
)
def test_invisible_characters_are_escaped(text, said):
    assert shown(text) == said


@given(ANYTHING)
def test_html_text_is_escaped(text):
    class Reader(HTMLParser):
        tags: list[str]

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.tags.append(tag)

    reader = Reader()
    reader.tags = []
    reader.feed(f'<p title="{shown_in_html(text)}">{shown_in_html(text)}</p>')
    assert reader.tags == ["p"]
    assert html.unescape(shown_in_html(text)) == shown(text)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("rtsp://me:SECRET@cam:554/a: no answer", "rtsp://cam:554/a: no answer"),
        ("http://h/a.mp4?token=SECRET: no such file", "http://h/a.mp4: no such file"),
        ("read 'http://h/a?t=SECRET'.", "read 'http://h/a'."),
        ("http://h/a#SECRET", "http://h/a"),
        ("http:/me:SECRET@h/x", "http:/h/x"),
        (r"http:\\me:SECRET@h:9\a.mp4?t=SECRET and C:\films\a@b.mp4", r"http:\\h:9\a.mp4 and C:\films\a@b.mp4"),
        ("rtsp://me:SECRET@one@h/x", "rtsp://h/x"),
        ("rtsp://me:SEC/RET@h/x", "rtsp://h/x"),
        ("http://u:SECRET@h/a,rtsp://u:SECRET@i/b?c=SECRET", "http://h/a,rtsp://i/b"),
        ("--video=http://SECRET@h/a", "--video=http://h/a"),
        ("http://[::1]:80/a and C:/films/a@b.mp4", "http://[::1]:80/a and C:/films/a@b.mp4"),
        ("https://github.com/@user/repository", "https://github.com/@user/repository"),
        ("12:30.mp4: no such file", "12:30.mp4: no such file"),
    ],
)
def test_an_address_is_shown_without_its_secrets(text, safe):
    assert without_credentials(text) == safe
    assert str(UsageError(text)) == str(PoseError(text)) == shown(text) == safe
    assert "SECRET" not in repr(PoseError(text))
