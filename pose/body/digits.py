"""Conversion of numbers to text, thousands of rows at a time.

Formatting is nearly all that `pose-convert --to csv` does. An hour of one person takes 0.9 s as CSV; formatting row by
row with % takes 4.1 s (measured at commit aeebe8c6).

Text is stored in uint8 arrays, one character per element along the last axis. Every cell is as wide as the widest one
in its block. Shorter cells are padded with NUL, which is removed when rows become text.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import U8

_MAX_EXACT = 2.0**53  # float64 does not represent larger integers exactly; such values are formatted one by one
_MINUS, _POINT, _ZERO = b"-.0"


def number(values: NDArray[np.generic], decimals: int = 0, prefix: str = "") -> U8:
    """Format numbers like "%.{decimals}f" as characters on a new last axis; not finite is empty, -0 is 0."""
    exact = np.asarray(values, np.float64)
    finite = np.isfinite(exact)
    all_finite = bool(finite.all())
    if not all_finite:
        exact = np.where(finite, exact, 0)
    with np.errstate(over="ignore"):
        units = np.rint(np.abs(exact) * 10.0**decimals)
    largest = float(units.max(initial=0))
    if largest >= _MAX_EXACT:
        cells = _formatted_by_numpy(np.where(units > 0, exact, 0), decimals)
    else:
        cells = _digits(units.astype(np.uint32 if largest < 2**32 else np.uint64), len(f"{largest:.0f}"), decimals)
        cells[..., 0] = np.where((exact < 0) & (units > 0), _MINUS, 0)
    if not all_finite:
        cells[~finite] = 0
    return joined(prefix, cells) if prefix else cells


def _digits(units: NDArray[np.unsignedinteger], digits: int, decimals: int) -> U8:
    """Return the digits (..., width) of fixed-point numbers in units of the last place, with room for a sign."""
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


def _formatted_by_numpy(values: NDArray[np.float64], decimals: int) -> U8:
    texts = np.char.mod(f"%.{decimals}f", values).astype("S")
    return texts[..., None].view(np.uint8)


def encoded(texts: Sequence[str]) -> U8:
    """Return n texts as UTF-8 bytes (n, width), padded with NUL to the longest text."""
    return np.array([text.encode() for text in texts], "S")[:, None].view(np.uint8)


def joined(*parts: U8 | str) -> U8:
    """Concatenate texts, which are strings or arrays (..., width) of characters; other axes are broadcast."""
    arrays = [encoded([part])[0] if isinstance(part, str) else part for part in parts]
    shape = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
    result = np.empty((*shape, sum(array.shape[-1] for array in arrays)), np.uint8)
    at = 0
    for array in arrays:
        result[..., at : at + array.shape[-1]] = array
        at += array.shape[-1]
    return result


def merged(cells: U8, axes: int = 1) -> U8:
    """Concatenate the texts of cells (N, ..., width), keeping the first `axes` axes."""
    return cells.reshape(*cells.shape[:axes], math.prod(cells.shape[axes:]))


def without_first(cells: U8) -> U8:
    """Return rows (n, width) without their first character, which is a separator."""
    return cells[:, 1:]


def to_bytes(cells: U8) -> bytes:
    """Return texts (..., width) as one sequence of bytes, without their NUL padding."""
    return cells.tobytes().translate(None, b"\0")
