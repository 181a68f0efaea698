"""A command deletes and replaces only what it wrote itself, as recorded in the folder."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from pose.system.whole_file import WholeFile
from pose.system.work_folder import work_folder
from pose.system.written_files import RECORD, WrittenFiles


def written(folder: Path, **files: str) -> WrittenFiles:
    """Files of ours, on the disk and in the record."""
    record = WrittenFiles(folder)
    for name, text in files.items():
        (folder / name).write_text(text)
        record.add(folder / name)
    record.save()
    return WrittenFiles(folder)


def test_what_is_recorded_and_unchanged_is_ours(tmp_path):
    record = written(tmp_path, a="one", b="two")
    (tmp_path / "b").write_text("by hand")
    (tmp_path / "c").write_text("foreign")
    assert [record.owns(tmp_path / name) for name in "abcd"] == [True, False, False, False]
    assert record.names == ["a", "b"]
    for name in "abcd":
        record.remove(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECORD, "b", "c"]


@pytest.mark.parametrize("name", ["b", "c"])
def test_what_is_in_the_way_and_not_ours_is_renamed(tmp_path, capsys, name):
    record = written(tmp_path, a="one", b="two")
    (tmp_path / name).write_text("the user's")
    for kept in (f"{name}.kept", f"{name}.kept-2"):
        record.make_way(tmp_path / name)
        assert re.search(rf"{name} (has changed since|was not written by).*kept as {kept}\n", capsys.readouterr().err)
        assert (tmp_path / kept).read_text() == "the user's"
        (tmp_path / name).write_text("the user's")
    record.make_way(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "one"


def test_a_folder_is_ours_with_all_it_holds(tmp_path):
    folder = tmp_path / "frames"
    folder.mkdir()
    (folder / "1.json").write_text("{}")
    record = WrittenFiles(tmp_path)
    record.add(folder)
    assert record.owns(folder)
    (folder / "notes.txt").write_text("mine")
    assert not record.owns(folder)
    record.make_way(folder)
    assert (tmp_path / "frames.kept" / "notes.txt").read_text() == "mine"


def test_links_and_devices_are_never_ours(tmp_path):
    target = tmp_path / "elsewhere"
    target.mkdir()
    (target / "mine").write_text("mine")
    record = written(tmp_path, a="one")
    (tmp_path / "a").unlink()
    (tmp_path / "a").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    for name in ("a", "pipe"):
        record.remove(tmp_path / name)
        record.make_way(tmp_path / name)
    assert (tmp_path / "a.kept").is_symlink()
    assert (target / "mine").read_text() == "mine"


def test_who_is_killed_between_record_and_rename_owns_both(tmp_path):
    record = written(tmp_path, a="old")
    new = tmp_path / "hidden"
    new.write_text("new")
    record.expect(new, "a")
    record.save_expected()
    assert WrittenFiles(tmp_path).owns(tmp_path / "a")
    new.replace(tmp_path / "a")
    record = WrittenFiles(tmp_path)
    assert record.owns(tmp_path / "a")
    record.settled("a")
    assert record.owns(tmp_path / "a")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"files": 3}', '{"files": {"a": 3}}', '{"files": {"a": [1]}}', "[" * 100_000, "\0\xff"]
)
def test_a_damaged_record_says_that_nothing_is_ours(tmp_path, text):
    written(tmp_path, a="one")
    (tmp_path / RECORD).write_bytes(text.encode("latin-1"))
    assert not WrittenFiles(tmp_path).owns(tmp_path / "a")


def test_a_record_that_is_a_pipe_or_huge_is_not_read(tmp_path):
    (tmp_path / "a").write_text("one")
    os.mkfifo(tmp_path / RECORD)
    assert not WrittenFiles(tmp_path).owns(tmp_path / "a")
    (tmp_path / RECORD).unlink()
    with (tmp_path / RECORD).open("wb") as file:
        file.truncate(1 << 40)
    assert not WrittenFiles(tmp_path).owns(tmp_path / "a")


def test_only_marked_work_folders_are_left_behind(tmp_path):
    """A hidden folder of the user stays, whatever its name; one of a killed process goes."""
    mine = tmp_path / ".new-important"
    like_ours = tmp_path / ".new-0123abcd"
    copied = tmp_path / ".new-89abcdef"
    for folder in (mine, like_ours, copied):
        folder.mkdir()
        (folder / "thesis.txt").write_text("years")
    script = (
        "import os; from pathlib import Path; from pose.system.work_folder import work_folder\n"
        f"with work_folder(Path({str(tmp_path)!r})) as f: (f / 'part').write_text('x'); os._exit(9)"
    )
    assert subprocess.run([os.sys.executable, "-c", script], check=False).returncode == 9
    (left,) = (path for path in tmp_path.iterdir() if (path / "part").exists())
    for name in os.listdir(left):
        if name.startswith("."):
            (copied / name).write_bytes((left / name).read_bytes())
    with work_folder(tmp_path):
        assert not left.exists()
    for folder in (mine, like_ours, copied):
        assert (folder / "thesis.txt").read_text() == "years"


def test_only_parts_of_our_own_files_are_leftovers(tmp_path):
    part = WholeFile(tmp_path / "poses.npz").path
    others = [".poses-notes.part", ".poses.npz.backup.part", ".other.0123abcd.part", "poses.npz.0123abcd.part"]
    for path in (part, *(tmp_path / name for name in others)):
        path.write_text("x")
    WholeFile.remove_leftovers(tmp_path, "poses.npz".__eq__)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)
