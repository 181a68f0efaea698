"""The files of one result are completed before the first one gets its name; if one fails, none is left."""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from pose_fakes import random_result, run_info

from pose.errors import PoseError
from pose.results import JsonWriter, NpzWriter, ResultFiles, load_poses
from pose.results.schema import ROW_COLUMNS
from pose.structures.columns import KEYPOINTS
from pose.structures.result_store import ResultStore
from pose.structures.skeletons import BLAZEPOSE33

FULL = "No space left on device"


def paths_in(folder, order=("json", "npz")):
    return {name: folder / f"poses.{name}" for name in order}


def fail(*_: object) -> None:
    raise PoseError(FULL)


def write(folder, rng, order=("json", "npz")):
    with ResultFiles(paths_in(folder, order), run_info()) as files:
        files.add_text(folder / "cameras.json", "[]\n")
        for index in range(3):
            files.write(random_result(rng, index, 2))
        files.close()


@pytest.mark.parametrize("order", [("json", "npz"), ("npz", "json")])
@pytest.mark.parametrize("writer", [JsonWriter, NpzWriter])
@pytest.mark.parametrize("step", ["write", "finish"])
def test_failing_writer_leaves_no_file(tmp_path, rng, monkeypatch, order, writer, step):
    monkeypatch.setattr(writer, step, fail)
    with pytest.raises(PoseError, match=FULL):
        write(tmp_path, rng, order)
    assert list(tmp_path.iterdir()) == []


def test_writer_that_cannot_open_leaves_no_file(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(NpzWriter, "__init__", fail)
    with pytest.raises(PoseError, match=FULL):
        write(tmp_path, rng)
    assert list(tmp_path.iterdir()) == []


def test_failing_text_output_leaves_no_file(tmp_path, rng):
    with ResultFiles(paths_in(tmp_path), run_info()) as files:
        files.add_text(tmp_path / "no folder" / "cameras.json", "[]\n")
        files.write(random_result(rng, 0, 2))
        with pytest.raises(PoseError, match=r"cameras\.json: No such file"):
            files.close()
    assert list(tmp_path.iterdir()) == []


def test_older_results_stay_until_all_new_ones_are_complete(tmp_path, rng, monkeypatch):
    old = {path: path.name.encode() for path in (*paths_in(tmp_path).values(), tmp_path / "cameras.json")}
    for path, content in old.items():
        path.write_bytes(content)
    monkeypatch.setattr(NpzWriter, "finish", fail)
    with pytest.raises(PoseError, match=FULL):
        write(tmp_path, rng)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == old


def test_the_first_rename_comes_after_the_last_write(tmp_path, rng, monkeypatch):
    """At the first rename, the other files are complete under temporary names."""
    commit, seen = JsonWriter.commit, []

    def look(writer):
        seen.extend(sorted(path.name.split(".")[1:3] for path in tmp_path.iterdir()))
        hidden = next(path for path in tmp_path.iterdir() if path.name.startswith(".poses.npz"))
        assert len(load_poses(hidden)) == 3
        commit(writer)

    monkeypatch.setattr(JsonWriter, "commit", look)
    write(tmp_path, rng)
    assert seen == [["cameras", "json"], ["poses", "json"], ["poses", "npz"]]


def test_failed_rename_deletes_pending_files(tmp_path, rng, monkeypatch):
    """Files that are renamed already stay: their older versions are gone."""
    monkeypatch.setattr(NpzWriter, "commit", fail)
    with pytest.raises(PoseError, match=FULL):
        write(tmp_path, rng)
    assert [path.name for path in tmp_path.iterdir()] == ["poses.json"]


def test_error_during_a_run_keeps_frames_in_all_files(tmp_path, rng):
    def interrupted() -> None:
        with ResultFiles(paths_in(tmp_path), run_info()) as files:
            files.write(random_result(rng, 0, 2))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    poses, document = load_poses(tmp_path), json.loads((tmp_path / "poses.json").read_text())
    assert (len(poses), poses.complete) == (len(document["frames"]), document["complete"]) == (1, False)


def test_a_finished_archive_is_deleted_by_abort(tmp_path, rng):
    writer = NpzWriter(tmp_path / "poses.npz", run_info())
    writer.write(random_result(rng, 0, 2))
    writer.finish()
    assert len(list(tmp_path.iterdir())) == 1
    writer.abort()
    writer.commit()
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_cannot_be_renamed_leaves_no_temporary_file(tmp_path, rng, monkeypatch):
    writer = NpzWriter(tmp_path / "poses.npz", run_info())
    writer.write(random_result(rng, 0, 2))
    (tmp_path / "poses.npz").mkdir()
    with pytest.raises(PoseError, match=r"poses\.npz: "):
        writer.close()
    assert [path.name for path in tmp_path.iterdir()] == ["poses.npz"]


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
