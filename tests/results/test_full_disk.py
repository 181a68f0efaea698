"""A disk that is full while scratch files grow."""

import sys
import tempfile

import pytest
from pose_fakes import random_result, run_info

from pose.errors import PoseError
from pose.results import NpzWriter
from pose.structures.result_store import ResultStore
from pose.structures.skeletons import BLAZEPOSE33


@pytest.fixture
def full_disk(monkeypatch) -> None:
    """Scratch files of which the system takes no byte: writes succeed only while they fit into Python's buffer."""
    assert sys.platform == "linux", "a device that is always full is a thing of Linux"
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: open("/dev/full", "w+b"))  # noqa: SIM115


def test_full_disk_for_arrays_names_the_file(tmp_path, rng, full_disk):
    def fill() -> None:
        with NpzWriter(tmp_path / "poses.npz", run_info()) as writer:
            for index in range(100):
                writer.write(random_result(rng, index, 2))

    with pytest.raises(PoseError, match=r"poses\.npz: No space left on device"):
        fill()
    assert list(tmp_path.iterdir()) == []


def test_full_disk_for_the_spool_gives_one_error(tmp_path, rng, full_disk):
    spool = ResultStore(tmp_path, BLAZEPOSE33, memory=0)

    def fill() -> None:
        for index in range(100):
            spool.write(random_result(rng, index, 2))

    with pytest.raises(PoseError, match="No space left on device"):
        fill()
    spool.close()
