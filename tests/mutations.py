"""Untrusted files, mutated: a reader takes one or raises a PoseError of one line.

Whatever else a reader raises fails the test by itself, so a check need not look for it. The same examples come every
time, a few by default and thousands in the slow suite; POSE_TEST_SEED=1 draws others.
"""

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def quick_and_long(quick: int, at_length: int) -> pytest.MarkDecorator:
    """Gives a test `examples`: so many by default, and so many in the slow suite."""
    lengths = [pytest.param(quick, id="quick"), pytest.param(at_length, id="at length", marks=pytest.mark.slow)]
    return pytest.mark.parametrize("examples", lengths)


def try_mutations(check: Callable[[st.DataObject], None], examples: int) -> None:
    """Call `check` with so many draws; the smallest that fails is shown."""

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        check(data)

    run()


def damaged(data: st.DataObject, content: bytes) -> bytes:
    """The content with one to four damages: bytes changed, cut out, doubled or inserted."""
    found = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(found)))
        length = data.draw(st.integers(0, 20))
        kind = data.draw(st.sampled_from(["replace", "delete", "double", "insert"]))
        if kind == "replace":
            found[at : at + length] = data.draw(st.binary(max_size=20))
        elif kind == "delete":
            del found[at : at + length]
        elif kind == "double":
            found[at:at] = found[at : at + length]
        else:
            found[at:at] = data.draw(st.sampled_from(_WORDS))
    return bytes(found)


_WORDS = [
    b"NaN", b"-Infinity", b"1e999", b"-1", b"0", b"[", b"{", b"null", b"true", b"\x00", b"\n", b"\r\n", b"\xff\xfe",
    b"\xef\xbb\xbf", b"\x1b[31m", b'"', b"9" * 400, b"../", b"~nobody/", b"\\ud800", "\u2028".encode(),
]  # fmt: skip


def other_value(data: st.DataObject, value: object) -> object:
    """A value of JSON with one part of it replaced by something else, wherever it lies."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 4)):
        key = data.draw(st.sampled_from(sorted(value)))
        if not data.draw(st.integers(0, 6)):
            return {name: part for name, part in value.items() if name != key}
        return value | {key: other_value(data, value[key])}
    if isinstance(value, list) and value and data.draw(st.integers(0, 4)):
        row = data.draw(st.integers(0, len(value) - 1))
        return [*value[:row], other_value(data, value[row]), *value[row + 1 :]]
    return data.draw(st.sampled_from(_VALUES) | st.text(max_size=4))


_VALUES: list[object] = [
    None, True, False, 0, -1, 1, 2, 10**400, 1e308, -1e308, 5e-324, float("nan"), float("inf"), "", "a\nb", [], {},
    [[]], [None], {"a": 1}, "NaN", "1", [0, 0], [0.0, 0.0, 0.0], "\x1b[31m",
]  # fmt: skip


def one_line(error: Exception) -> None:
    """Fails if the message has more than a line, is very long, or would change a terminal."""
    said = str(error)
    assert said
    assert len(said) < 2000
    assert all(letter.isprintable() or unicodedata.category(letter) == "Zs" for letter in said), repr(said)
