"""Rows on disk come back as they were, by key and in their order."""

import numpy as np
import pytest

from pose.errors import PoseError
from pose.utils.row_file import RowFile

KIND = np.dtype([("time", "<f8"), ("place", "<f4", 3)])


def rows(first, count):
    made = np.zeros(count, KIND)
    made["time"] = np.arange(first, first + count)
    made["place"] = made["time"][:, None] * [1, 2, 3]
    return made


@pytest.mark.parametrize("memory", [0, 60, 1 << 20], ids=["file", "file from the second block on", "memory"])
def test_rows_round_trip_by_key(tmp_path, memory):
    with RowFile(KIND, tmp_path, memory) as file:
        file.append(7, rows(0, 5))
        file.append(3, rows(100, 2))
        file.append(7, rows(5, 4))
        assert file.keys == [7, 3]
        np.testing.assert_array_equal(file.read(7), rows(0, 9))
        np.testing.assert_array_equal(file.read(3), rows(100, 2))
        assert len(file.read(1)) == 0
        portions = list(file.portions(7, 3))
        assert [len(part) for part in portions] == [3, 3, 3]
        np.testing.assert_array_equal(np.concatenate(portions), rows(0, 9))
        file.append(3, rows(102, 1))  # also after reading
        np.testing.assert_array_equal(file.read(3), rows(100, 3))
        assert not list(tmp_path.iterdir())  # nameless: nothing is left, whatever happens


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(PoseError, match="nowhere"):
        RowFile(KIND, tmp_path / "nowhere", memory=0)
