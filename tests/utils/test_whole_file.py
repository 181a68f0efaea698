"""Files that appear only when they are whole."""

import errno

import pytest

from pose.errors import PoseError
from pose.utils.whole_file import WholeFile, whole_file, write_whole


def test_file_has_its_name_only_when_complete(tmp_path):
    target = tmp_path / "poses.json"
    target.write_bytes(b"old")
    with whole_file(target) as hidden:
        hidden.write_bytes(b"new")
        assert hidden.name.startswith(".poses.json.")
        assert target.read_bytes() == b"old"
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [ValueError("ours"), KeyboardInterrupt()])
def test_error_keeps_the_old_file_and_no_leftovers(tmp_path, error):
    target = tmp_path / "poses.json"
    target.write_bytes(b"old")

    def fail() -> None:
        with whole_file(target) as hidden:
            hidden.write_bytes(b"half")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"poses.json": b"old"}


def test_full_disk_error_names_the_file(tmp_path):
    def fill() -> None:
        with whole_file(tmp_path / "poses.json") as hidden:
            hidden.write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device", str(hidden))

    with pytest.raises(PoseError, match=r"/poses\.json: No space left on device$"):
        fill()
    assert not list(tmp_path.iterdir())


def test_folder_at_the_target_leaves_no_leftovers(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(PoseError, match="taken: Is a directory"):
        write_whole(tmp_path / "taken", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_concurrent_writers_do_not_mix(tmp_path):
    first, second = WholeFile(tmp_path / "a"), WholeFile(tmp_path / "a")
    first.path.write_bytes(b"first")
    second.path.write_bytes(b"second")
    second.commit()
    first.commit()
    assert (tmp_path / "a").read_bytes() == b"first"
