"""Commands and the Python API refuse the same heights and angles."""

import math

import pytest

from pose import Pipeline, lift
from pose.errors import UsageError
from pose.world.given import check_heights, checked_up, read_heights


@pytest.mark.parametrize("height", [99, 0, -1, math.inf, math.nan, "1.8", True, None])
def test_a_height_out_of_range_is_refused(height, tmp_path):
    with pytest.raises(UsageError, match="height"):
        check_heights({None: height})
    with pytest.raises(UsageError, match="height"):
        lift(tmp_path / "missing.npz", world=True, heights={1: height})
    with pytest.raises(UsageError, match="height"):
        read_heights(str(height) if height != "1.8" else "tall")


@pytest.mark.parametrize("keys", [{"1": 1.8}, {1.5: 1.8}, [1.8], 1.8])
def test_heights_are_those_of_ids(keys):
    with pytest.raises(UsageError, match="heights: expected"):
        check_heights(keys)


@pytest.mark.parametrize(("pitch", "roll"), [(999, None), (math.nan, 0), (0, 181), (None, "1"), (-math.inf, None)])
def test_angles_out_of_range_are_refused_before_any_work(pitch, roll, tmp_path):
    with pytest.raises(UsageError, match=r"pitch|roll"):
        checked_up(pitch, roll)
    with pytest.raises(UsageError, match=r"pitch|roll"):
        lift(tmp_path / "missing.npz", world=True, pitch=pitch, roll=roll)
    with pytest.raises(UsageError, match=r"pitch|roll"):
        Pipeline.process(Pipeline.__new__(Pipeline), tmp_path / "missing.mp4", pitch=pitch, roll=roll)


def test_what_is_in_range_passes():
    check_heights({None: 1.8, 2: 1})
    assert checked_up(None, None) is None
    assert checked_up(0, None) == pytest.approx([0, -1, 0])
