"""Numbers as text in blocks, against Python's own formatting one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from pose.body.digits import number, to_bytes

ANY = arrays(
    np.float64, array_shapes(max_dims=2, max_side=5), elements=st.floats(allow_nan=False, allow_infinity=False)
)
USUAL = arrays(np.float64, array_shapes(max_dims=2, max_side=5), elements=st.floats(-1e6, 1e6))


def cells(values, decimals):
    made = number(values, decimals)
    return [to_bytes(one).decode() for one in made.reshape(-1, made.shape[-1])]


@given(values=USUAL | ANY, decimals=st.integers(0, 6))
def test_formatted_numbers_are_correctly_rounded(values, decimals):
    for got, value in zip(cells(values, decimals), values.reshape(-1).tolist(), strict=True):
        whole, _, fraction = got.partition(".")
        assert len(fraction) == decimals
        assert whole.removeprefix("-") == str(int(whole.removeprefix("-"))), "no zeros in front"
        assert float(got) == pytest.approx(value, rel=1e-15, abs=0.5 * 10**-decimals * (1 + 1e-9))
        assert not (float(got) == 0 and got.startswith("-"))


@pytest.mark.parametrize(
    ("value", "decimals"),
    [(0, 0), (7, 0), (9.99, 1), (-0.06, 1), (0.04, 2), (4294967295, 0), (4294967296, 0), (42949.67295, 5), (1e15, 3),
     (2.0**53, 0), (-1e22, 2)],
)  # fmt: skip
def test_formatted_numbers_equal_python(value, decimals):
    assert cells(np.array([value]), decimals) == [f"{value:.{decimals}f}"]


def test_nan_and_infinity_are_empty():
    assert cells(np.array([np.nan, 1.5, np.inf, -np.inf]), 1) == ["", "1.5", "", ""]
    assert to_bytes(number(np.array([[np.nan, -2]]), 1, prefix=",")) == b",,-2.0"
    assert number(np.zeros(0), 2).shape[0] == 0
