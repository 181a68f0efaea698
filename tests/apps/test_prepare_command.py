"""`pose-prepare`: what it writes is what evaluation reads."""

import shutil
import zipfile

import numpy as np
import pytest
from benchmark_files import write_mpi_inf_3dhp, write_protocol_m, write_raw_release
from pose_apps.prepare import main
from pose_datasets import human36m, human36m_motionbert, mpi_inf_3dhp
from pose_datasets.mocap import load_clips


@pytest.fixture
def run(capsys):
    def call(*arguments):
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def test_human36m_from_the_release(run, tmp_path):
    release = write_raw_release(tmp_path / "raw", {"S9": {"WalkingDog": 8}, "S11": {"Directions": 3, "Sitting 1": 6}})
    status, out, err = run("human36m", "--source", release, "--out", tmp_path / "h36m")
    assert (status, err) == (0, "")
    assert "S9: 1 takes; the whole release has 30" in out
    keys = {one.key for one in human36m.load_sequences(tmp_path / "h36m", "gt")}
    assert {key.rsplit("/", 1)[0] for key in keys} == {"S9/WalkDog", "S11/Sitting 1"}


def test_motionbert_pickle_is_converted_to_plain_arrays(run, tmp_path):
    folder = write_protocol_m(tmp_path / "m", [("S9", "Greeting", 1, 0, 20)])
    status, out, _ = run("human36m-m", "--source", folder / human36m_motionbert.FILE, "--out", tmp_path / "plain")
    assert (status, out) == (0, f"wrote {tmp_path / 'plain' / human36m_motionbert.PREPARED}\n")
    for load in (human36m_motionbert.load_test, lambda where: human36m_motionbert.load_poses(where, "train")):
        before, after = load(folder)[0], load(tmp_path / "plain")[0]
        assert before.key == after.key
        assert np.array_equal(before.truth, after.truth)
        assert np.array_equal(before.observed.keypoints, after.observed.keypoints)


@pytest.mark.parametrize("zipped", [False, True])
def test_mpi_inf_3dhp_without_its_images(run, tmp_path, zipped):
    source = write_mpi_inf_3dhp(tmp_path / "mpi_inf_3dhp_test_set", {"TS1": 6, "TS5": 4})
    (source / "TS1" / "img_000001.jpg").write_bytes(b"picture")
    if zipped:
        archive = tmp_path / "test_set.zip"
        with zipfile.ZipFile(archive, "w") as file:
            for path in source.rglob("*.*"):
                file.write(path, path.relative_to(tmp_path))
        source = archive
    status, out, _ = run("mpi-inf-3dhp", "--source", source, "--out", tmp_path / "out")
    assert status == 0
    assert out.count("wrote") == 2
    assert sorted(p.name for p in (tmp_path / "out").rglob("[!.]*") if p.is_file()) == ["annot_data.mat"] * 2
    assert [len(one) for one in mpi_inf_3dhp.load_sequences(tmp_path / "out")] == [6, 4]


def test_mocap_archives_are_prepared(run, shared, tmp_path):
    (tmp_path / "database").mkdir()
    smallest = min((shared / "mocap" / "cmu").glob("*.zip"), key=lambda path: path.stat().st_size)
    shutil.copy(smallest, tmp_path / "database")
    status, out, _ = run("mocap", "--source", tmp_path / "database", "--out", tmp_path / "clips.npz")
    assert status == 0
    assert "1 subjects" in out
    assert {clip.subject for clip in load_clips(tmp_path / "clips.npz")} == {smallest.stem}


def write_run(path, frames=10, known=True):
    """What pose-run writes: two people, of which the second is there for some frames only."""
    from pose.results import NpzWriter, RunInfo
    from pose.structures.camera import Camera
    from pose.structures.skeletons import COCO17
    from pose.structures.types import FrameResult, People, Poses3D

    lens = np.array([[500.0, 0, 320], [0, 500, 240], [0, 0, 1]])
    camera = Camera.of((640, 480), lens if known else None)
    info = RunInfo(source="clip.mp4", fps=25.0, camera=camera, skeleton=COCO17)
    with NpzWriter(path, info) as writer:
        for index in range(frames):
            ids = np.array([3, 8] if 2 <= index < 7 else [3])
            n = len(ids)
            keypoints = (50 * ids[:, None, None] + index + np.zeros((n, 17, 2))).astype(np.float32)
            ones = np.ones((n, 17), np.float32)
            people = People(
                index, index / 25, ids, np.zeros((n, 4), np.float32), np.ones(n, np.float32), keypoints, ones
            )
            poses = Poses3D(np.zeros((n, 17, 3), np.float32), np.zeros((n, 3), np.float32), ones)
            writer.write(FrameResult(people, poses))
    return path


def test_sequence_extracts_one_person_of_a_result(run, tmp_path):
    from pose.results.keypoints import read_keypoints

    poses = write_run(tmp_path / "poses.npz")
    assert run("sequence", "--source", poses, "--out", tmp_path / "longest.npz")[0] == 0
    assert read_keypoints(tmp_path / "longest.npz").keypoints[4, 0].tolist() == [154, 154]
    status, out, _ = run("sequence", "--source", poses, "--person", "8", "--out", tmp_path / "second.npz")
    assert (status, out) == (0, f"wrote {tmp_path / 'second.npz'}: person 8, seen in 5 frames\n")
    second = read_keypoints(tmp_path / "second.npz")
    assert second.scores[:, 0].tolist() == [0, 0, 1, 1, 1, 1, 1, 0, 0, 0]
    assert second.keypoints[3, 0].tolist() == [403, 403]
    assert second.camera.matrix[0, 0] == 500
    status, _, err = run("sequence", "--source", poses, "--person", "5", "--out", tmp_path / "x.npz")
    assert (status, err) == (2, f"error: --person: 5 is not in {poses}; it has 3, 8\n")


def test_damaged_annotations_leave_no_file(run, tmp_path):
    source = write_mpi_inf_3dhp(tmp_path / "set", {"TS1": 6})
    (source / "TS1" / "annot_data.mat").write_bytes(b"text")
    status, _, err = run("mpi-inf-3dhp", "--source", source, "--out", tmp_path / "out")
    assert status == 1
    assert "not a readable MPI-INF-3DHP annotation file" in err
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_existing_results_are_replaced_only_on_request(run, tmp_path):
    poses, out = write_run(tmp_path / "poses.npz"), tmp_path / "one.npz"
    call = ("sequence", "--source", poses, "--out", out)
    assert run(*call)[0] == 0
    before = out.stat().st_mtime_ns, out.read_bytes()
    message = f"error: {out} exists; give --overwrite to replace it, or another place with --out\n"
    assert run(*call, "--person", "8") == (2, "", message)
    assert (out.stat().st_mtime_ns, out.read_bytes()) == before
    status, _, err = run(*call, "--person", "8", "--overwrite")
    assert (status, err) == (0, "")
    assert out.read_bytes() != before[1]


@pytest.mark.parametrize("what", ["human36m", "human36m-m", "mpi-inf-3dhp"])
def test_interrupted_preparation_is_completed_by_a_second_call(run, tmp_path, what):
    match what:
        case "human36m":
            source = write_raw_release(tmp_path / "raw", {"S9": {"WalkingDog": 8}})
        case "human36m-m":
            source = write_protocol_m(tmp_path / "m", [("S9", "Greeting", 1, 0, 20)]) / human36m_motionbert.FILE
        case _:
            source = write_mpi_inf_3dhp(tmp_path / "set", {"TS1": 6, "TS5": 4})
    call = (what, "--source", source, "--out", tmp_path / "out")
    assert run(*call)[0] == 0
    written = sorted(path for path in (tmp_path / "out").rglob("[!.]*") if path.is_file())
    status, _, err = run(*call)
    assert status == 2
    assert "exists; give --overwrite" in err
    written[-1].unlink()
    status, _, err = run(*call)
    assert (status, err) == (0, "")
    assert sorted(path for path in (tmp_path / "out").rglob("[!.]*") if path.is_file()) == written
    assert run(*call, "--overwrite")[0] == 0


def test_a_file_of_the_user_stops_an_interrupted_preparation(run, tmp_path):
    source = write_mpi_inf_3dhp(tmp_path / "set", {"TS1": 6, "TS5": 4})
    own = tmp_path / "out" / "TS1" / "annot_data.mat"
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    status, _, err = run("mpi-inf-3dhp", "--source", source, "--out", tmp_path / "out")
    assert (status, own.read_text()) == (2, "mine")
    assert err.startswith(f"error: {own} exists; give --overwrite")
    assert not (tmp_path / "out" / "TS5").exists()


@pytest.mark.parametrize("what", ["human36m", "human36m-m", "mpi-inf-3dhp", "mocap", "sequence"])
def test_missing_source_gives_a_one_line_error(run, tmp_path, what):
    status, out, err = run(what, "--source", tmp_path / "none", "--out", tmp_path / "out")
    assert (status, out) == (2, "")
    assert err == f"error: --source: {tmp_path / 'none'}: no such file or folder\n"


def test_empty_source_gives_a_one_line_error(run, tmp_path):
    status, _, err = run("mpi-inf-3dhp", "--source", tmp_path, "--out", tmp_path / "out")
    assert status == 2
    assert "contains no TS1/annot_data.mat (see docs/reference/benchmark-data.md)" in err
