"""A command deletes and replaces only what it wrote itself, as recorded in the folder."""

import errno
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pose.errors import PoseError, UsageError
from pose.utils.row_file import RowFile
from pose.utils.whole_file import WholeFile, whole_file, write_whole
from pose.utils.work_folder import work_folder
from pose.utils.written_files import RECORD, WrittenFiles, check_target, writing


def written(folder: Path, **files: str) -> WrittenFiles:
    """Files of ours, on the disk and in the record."""
    record = WrittenFiles(folder)
    for name, text in files.items():
        (folder / name).write_text(text)
        record.add(folder / name)
    record.save()
    return WrittenFiles(folder)


def test_recorded_unchanged_files_are_owned(tmp_path):
    record = written(tmp_path, a="one", b="two")
    (tmp_path / "b").write_text("by hand")
    (tmp_path / "c").write_text("foreign")
    assert [record.owns(tmp_path / name) for name in "abcd"] == [True, False, False, False]
    assert record.names == ["a", "b"]
    for name in "abcd":
        record.remove(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECORD, "b", "c"]


@pytest.mark.parametrize("name", ["b", "c"])
def test_foreign_files_in_the_way_are_renamed(tmp_path, capsys, name):
    record = written(tmp_path, a="one", b="two")
    (tmp_path / name).write_text("the user's")
    for kept in (f"{name}.kept", f"{name}.kept-2"):
        record.move_user_file(tmp_path / name)
        assert re.search(rf"{name} (has changed since|was not written by).*kept as {kept}\n", capsys.readouterr().err)
        assert (tmp_path / kept).read_text() == "the user's"
        (tmp_path / name).write_text("the user's")
    record.move_user_file(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "one"


def test_folder_with_foreign_files_is_not_owned(tmp_path):
    folder = tmp_path / "frames"
    folder.mkdir()
    (folder / "1.json").write_text("{}")
    record = WrittenFiles(tmp_path)
    record.add(folder)
    assert record.owns(folder)
    (folder / "notes.txt").write_text("mine")
    assert not record.owns(folder)
    record.move_user_file(folder)
    assert (tmp_path / "frames.kept" / "notes.txt").read_text() == "mine"


def test_links_and_devices_are_never_owned(tmp_path):
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "mine").write_text("mine")
    record = written(tmp_path, a="one")
    (tmp_path / "a").unlink()
    (tmp_path / "a").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    for name in ("a", "pipe"):
        record.remove(tmp_path / name)
        assert os.path.lexists(tmp_path / name)
    record.move_user_file(tmp_path / "a")
    assert (tmp_path / "a.kept").is_symlink()
    assert (target / "mine").read_text() == "mine"


def test_kill_between_record_and_rename_keeps_ownership(tmp_path):
    record = written(tmp_path, a="old")
    new = tmp_path / "hidden"
    new.write_text("new")
    record.expect(new, "a")
    record.save_expected()
    assert WrittenFiles(tmp_path).owns(tmp_path / "a")
    new.replace(tmp_path / "a")
    record = WrittenFiles(tmp_path)
    assert record.owns(tmp_path / "a")
    record.confirm("a")
    assert record.owns(tmp_path / "a")


@pytest.mark.parametrize("text", ["", "[]", '{"files": 3}', '{"files": {"a": [1]}}', "[" * 100_000, "\0\xff"])
def test_damaged_record_owns_no_file(tmp_path, text):
    written(tmp_path, a="one")
    (tmp_path / RECORD).write_bytes(text.encode("latin-1"))
    assert not WrittenFiles(tmp_path).owns(tmp_path / "a")


def test_record_that_is_a_pipe_or_huge_owns_no_file(tmp_path):
    os.mkfifo(tmp_path / RECORD)
    assert not WrittenFiles(tmp_path).owns(tmp_path / "a")
    (tmp_path / RECORD).unlink()
    with (tmp_path / RECORD).open("wb") as file:
        file.truncate(1 << 40)
    assert not WrittenFiles(tmp_path).owns(tmp_path / "a")


def killed_in(parent: Path, *files: str) -> Path:
    """The work folder of a process that was killed after it wrote `files`; it expects poses.npz and frames/*.json."""
    script = (
        "import os, sys; from pathlib import Path; from pose.utils.work_folder import work_folder\n"
        f"with work_folder(Path({str(parent)!r}), ['poses.npz', 'frames/*.json']) as folder:\n"
        "    for name in sys.argv[1:]:\n"
        "        (folder / name).parent.mkdir(exist_ok=True); (folder / name).write_text('x')\n"
        "    os._exit(9)"
    )
    assert subprocess.run([os.sys.executable, "-c", script, *files], check=False).returncode == 9
    (left,) = (path for path in parent.iterdir() if all((path / name).exists() for name in files))
    return left


def test_only_own_leftover_work_folders_are_removed(tmp_path):
    """A hidden folder of the user stays, whatever its name; one of a killed process goes."""
    mine = tmp_path / ".new-important"
    like_ours = tmp_path / ".new-0123abcd"
    copied = tmp_path / ".new-89abcdef"
    for folder in (mine, like_ours, copied):
        folder.mkdir()
        (folder / "thesis.txt").write_text("years")
    left = killed_in(tmp_path, "poses.npz", ".poses.npz.0123abcd.part", "frames/1.json")
    for name in os.listdir(left):
        if name.startswith("."):
            (copied / name).write_bytes((left / name).read_bytes())
    with work_folder(tmp_path, []):
        assert not left.exists()
    for folder in (mine, like_ours, copied):
        assert (folder / "thesis.txt").read_text() == "years"


@pytest.mark.parametrize("name", ["thesis.txt", "frames/thesis.txt", ".thesis.0123abcd.part"])
def test_user_files_in_a_work_folder_are_kept(tmp_path, name):
    left = killed_in(tmp_path, "poses.npz", "frames/1.json", name)
    with work_folder(tmp_path, []):
        pass
    assert [path for path in left.rglob("*") if path.is_file()] == [left / name]
    with work_folder(tmp_path, ["poses.npz", "frames/*"]) as own:
        (own / "poses.npz").write_text("half")
        (own / "notes.txt").write_text("mine")
    assert [path.name for path in own.iterdir()] == ["notes.txt"]


def test_written_files_are_recorded_and_foreign_ones_kept(tmp_path, capsys):
    ours, foreign = tmp_path / "new" / "a", tmp_path / "b"
    foreign.write_text("the user's")
    for text in ("one", "two"):
        with writing([ours, foreign, tmp_path / "never"]):
            ours.write_text(text)
            foreign.write_text(text)
    assert WrittenFiles(ours.parent).owns(ours)
    assert WrittenFiles(tmp_path).owns(foreign)
    assert (tmp_path / "b.kept").read_text() == "the user's"
    assert capsys.readouterr().err.count("warning") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECORD, "b", "b.kept", "new"]


def test_a_file_of_a_thread_is_not_kept_when_another_ends_first(tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.bvh"
    with writing([first]):
        with writing([second]):
            second.write_text("2")
        first.write_text("1")
        with writing([first]):
            first.write_text("1")
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECORD, "first.csv", "second.bvh"]
    assert all(WrittenFiles(tmp_path).owns(path) for path in (first, second))
    assert "process" not in (tmp_path / RECORD).read_text()


def test_only_own_part_files_are_removed(tmp_path):
    part = WholeFile(tmp_path / "poses.npz").path
    others = [".poses-notes.part", ".poses.npz.backup.part", ".other.0123abcd.part", "poses.npz.0123abcd.part"]
    for path in (part, *(tmp_path / name for name in others)):
        path.write_text("x")
    WholeFile.remove_leftovers(tmp_path, "poses.npz".__eq__)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


@pytest.fixture
def pipe(tmp_path) -> Path:
    path = tmp_path / "poses.npz"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize(
    "write",
    [
        lambda path: WrittenFiles(path.parent).move_user_file(path),
        lambda path: write_whole(path, "text"),
        lambda path: check_target(path, overwrite=True),
    ],
)
def test_devices_and_pipes_are_neither_renamed_nor_replaced(pipe, write):
    with pytest.raises(PoseError, match="is a device, a pipe or a socket"):
        write(pipe)
    assert pipe.is_fifo()
    assert [path.name for path in pipe.parent.iterdir()] == ["poses.npz"]


def test_a_target_is_not_an_input_of_the_call(tmp_path):
    clip, link = tmp_path / "a.mp4", tmp_path / "link.npz"
    clip.write_text("film")
    link.symlink_to(clip)
    for target in (clip, link):
        with pytest.raises(UsageError, match="would replace an input"):
            check_target(target, [clip], overwrite=True)
    check_target(tmp_path / "new.npz", [clip], overwrite=False)


def test_a_folder_is_not_a_file_to_write(tmp_path):
    with pytest.raises(UsageError, match="is a folder; give the name of the file"):
        check_target(tmp_path, overwrite=True)


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
