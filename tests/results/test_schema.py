"""docs/reference/outputs.md names every column of a result with its shape, type and unit."""

from pathlib import Path

import numpy as np
import pytest

from pose.results.schema import ROW_COLUMNS
from pose.structures.columns import KEYPOINTS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "outputs.md").read_text(encoding="utf-8")
LINES = [line for line in PAGE.partition("## poses.npz")[2].splitlines() if line.startswith("| `")]


@pytest.mark.parametrize("column", ROW_COLUMNS, ids=lambda one: one.name)
def test_a_column_is_documented_with_its_shape_and_type(column):
    (line,) = (line for line in LINES if f"`{column.name}`" in line.split("|")[1])
    sides = ["N", *("J" if side == KEYPOINTS else str(side) for side in column.shape)]
    shape = f"({', '.join(sides)}{',' if len(sides) == 1 else ''})"
    assert shape in line.split("|")[2]
    assert np.dtype(column.dtype).name in line.split("|")[2]
    assert column.unit in PAGE
