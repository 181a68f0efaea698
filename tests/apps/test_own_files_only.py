"""Whatever command writes, a file of the user that is in the way is kept; `NAME.kept` has its content."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from pose_apps.analyse import main as pose_analyse
from pose_apps.lift import main as pose_lift
from pose_fakes import random_result, run_info

from pose import convert, load
from pose.results import NpzWriter
from pose.results.cache.store import Cache
from pose.structures.skeletons import H36M17
from pose.utils.written_files import RECORD

sys.path.append(str(Path(__file__).parents[1] / "analysis"))
from stick_figures import squats
from test_analyse_command import write as write_result

MINE = "cleaned by hand"


def everything(folder: Path) -> dict[str, str]:
    """What the user may miss: every file but our record, by name, with its content."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != RECORD]
    return {str(path.relative_to(folder)): path.read_bytes().decode("latin-1") for path in files}


@pytest.fixture
def keypoints(tmp_path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("one", "two"):
        np.savez(
            folder / f"{name}.npz",
            keypoints=np.random.default_rng(0).uniform(100, 300, (9, 17, 2)).astype(np.float32),
            scores=np.ones((9, 17), np.float32),
            timestamps=np.arange(9) / 30,
            image_size=np.array([640, 480]),
            skeleton="coco17",
        )
    return folder


def lifted(keypoints: Path, tiny_lifter: Path, *words: str) -> int:
    return pose_lift([*words, "--lifter", str(tiny_lifter), "--overwrite", "--quiet"])


@pytest.mark.parametrize("several", [False, True])
def test_pose_lift_renames_user_files_in_its_output_folder(keypoints, tiny_lifter, several, capsys):
    out = keypoints / "out"
    out.mkdir()
    words = [str(keypoints / "one.npz"), *([str(keypoints / "two.npz")] if several else []), "--out", str(out)]
    (out / "one.npz").write_text(MINE)
    (out / "notes.txt").write_text(MINE)
    for _ in range(2):
        assert lifted(keypoints, tiny_lifter, *words) == 0
    there = everything(out)
    assert there["one.npz.kept"] == there["notes.txt"] == MINE
    assert sorted(there) == ["notes.txt", "one.npz", "one.npz.kept", *(["two.npz"] if several else [])]
    assert "kept as one.npz.kept" in capsys.readouterr().err


def test_pose_lift_keeps_even_the_file_that_it_was_told_to_replace(keypoints, tiny_lifter):
    out = keypoints / "out.npz"
    out.write_text(MINE)
    before = everything(keypoints)
    for _ in range(2):
        assert lifted(keypoints, tiny_lifter, str(keypoints / "one.npz"), "--out", str(out)) == 0
    after = everything(keypoints)
    assert after.keys() == before.keys() | {"out.npz.kept"}
    assert after["out.npz.kept"] == MINE
    assert {name for name in before if before[name] != after[name]} == {"out.npz"}


@pytest.fixture
def result(tmp_path) -> Path:
    path, rng = tmp_path / "poses.npz", np.random.default_rng(0)
    with NpzWriter(path, run_info(H36M17)) as writer:
        for index in range(9):
            writer.write(random_result(rng, index, 1, H36M17))
    return path


@pytest.mark.parametrize("name", ["csv", "openpose"])
def test_python_convert_renames_changed_files(result, tmp_path, name):
    out = tmp_path / "out"
    (made,) = convert(load(result), name, out)
    mine = made / "poses_000000000001_keypoints.json" if made.is_dir() else made
    mine.write_text(MINE)
    with pytest.warns(UserWarning, match=f"{made.name} has changed since .* kept as {made.name}.kept"):
        convert(load(result), name, out, overwrite=True)
    convert(load(result), name, out, overwrite=True)
    kept = out / f"{made.name}.kept"
    assert ((kept / mine.name) if kept.is_dir() else kept).read_text() == MINE
    assert sorted(path.name for path in out.iterdir()) == [RECORD, made.name, kept.name]


def test_pose_analyse_renames_foreign_tables(tmp_path):
    source = write_result(tmp_path / "poses.npz", {1: squats(1)[0]})
    (tmp_path / "analysis.json").write_text(MINE)
    words = [str(source), "--formats", "json", "--overwrite", "--quiet"]
    assert [pose_analyse(words), pose_analyse(words)] == [0, 0]
    assert everything(tmp_path)["analysis.json.kept"] == MINE
    assert sorted(os.listdir(tmp_path)) == [RECORD, "analysis.json", "analysis.json.kept", "poses.npz"]


def test_cache_renames_foreign_files(tmp_path):
    key = "ab" * 32
    mine = tmp_path / f"{key}.entry"
    mine.write_text(MINE)
    with Cache(tmp_path) as cache:
        assert cache.find(key) is None
        with cache.create(key) as entry:
            entry.write(b"poses")
            entry.commit({})
        assert cache.problem is None
        found = cache.find(key)
        assert found is not None
        found.close()
    assert everything(tmp_path)[f"{key}.entry.kept"] == MINE
