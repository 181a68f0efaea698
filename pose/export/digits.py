"""Numbers as text, thousands of rows at a time: CSV of an hour of one person in 0.9 s, a %-format per row needs 4.1 s.

`benchmarks/number_text.py` measures it. Formatting is nearly all that `pose-convert --to csv` does.

Characters are byte arrays whose last axis runs along the text. Cells are as wide as the widest of their block; shorter
ones are padded with NUL, which is removed when rows become text.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pose.types import U8

_EXACT = 2.0**53  # larger float64 values have no exact units and are formatted one by one
_MINUS, _POINT, _ZERO = b"-.0"


def number(values: NDArray[np.generic], decimals: int = 0, prefix: str = "") -> U8:
    """Format numbers like "%.{decimals}f", except for ties: (...,) -> (..., width) characters, after `prefix`.

    Non-finite numbers become empty; zero has no sign.
    """
    exact = np.asarray(values, np.float64)
    finite = np.isfinite(exact)
    whole = bool(finite.all())
    if not whole:
        exact = np.where(finite, exact, 0)
    with np.errstate(over="ignore"):
        units = np.rint(np.abs(exact) * 10.0**decimals)
    largest = float(units.max(initial=0))
    if largest >= _EXACT:
        cells = _printed(np.where(units > 0, exact, 0), decimals)
    else:
        cells = _digits(units.astype(np.uint32 if largest < 2**32 else np.uint64), len(f"{largest:.0f}"), decimals)
        cells[..., 0] = np.where((exact < 0) & (units > 0), _MINUS, 0)
    if not whole:
        cells[~finite] = 0
    return joined(prefix, cells) if prefix else cells


def _digits(units: NDArray[np.unsignedinteger], digits: int, decimals: int) -> U8:
    """Digits of integers: (...,) units of the last place -> (..., width), `digits` at most, with room for a sign."""
    count = max(digits, decimals + 1)
    cells = np.empty((*units.shape, 1 + count + (decimals > 0)), np.uint8)
    at, left, ten = cells.shape[-1] - 1, units, units.dtype.type(10)
    for place in range(count):
        if place == decimals and place > 0:
            cells[..., at] = _POINT
            at -= 1
        rest = left // ten
        digit = (left - rest * ten).astype(np.uint8)
        digit += _ZERO
        if place > decimals:
            digit *= left > 0  # no leading zeros
        cells[..., at] = digit
        at, left = at - 1, rest
    return cells


def _printed(values: NDArray[np.float64], decimals: int) -> U8:
    texts = np.char.mod(f"%.{decimals}f", values).astype("S")
    return texts[..., None].view(np.uint8)


def words(texts: Sequence[str]) -> U8:
    """Characters (n, width) of texts, in UTF-8."""
    return np.array([text.encode() for text in texts], "S")[:, None].view(np.uint8)


def joined(*parts: U8 | str) -> U8:
    """Concatenate characters along the last axis; the other axes are broadcast."""
    arrays = [words([part])[0] if isinstance(part, str) else part for part in parts]
    shape = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    whole = np.empty((*shape, sum(array.shape[-1] for array in arrays)), np.uint8)
    at = 0
    for array in arrays:
        whole[..., at : at + array.shape[-1]] = array
        at += array.shape[-1]
    return whole


def row(cells: U8, axes: int = 1) -> U8:
    """Merge all axes after the first `axes`."""
    return cells.reshape(*cells.shape[:axes], math.prod(cells.shape[axes:]))


def without_first(cells: U8) -> U8:
    """Rows (n, width) without their first character, a leading separator."""
    return cells[:, 1:]


def text(cells: U8) -> bytes:
    """The rows as bytes."""
    return cells.tobytes().translate(None, b"\0")
