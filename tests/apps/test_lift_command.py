"""`pose-lift`, as a user calls it."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from command_errors import error_line
from pose_apps.lift import main
from pose_fakes import STANDING

from pose.results import load_poses
from pose.structures.camera import project
from pose.structures.skeletons import SKELETONS

FRAMES = 20


def keypoints(skeleton: str = "coco17", **changes: object) -> dict[str, object]:
    """A valid file's arrays: a person who drifts to the right."""
    joints = len(SKELETONS[skeleton])
    drift = np.linspace(0, 60, FRAMES)[:, None, None] * [1, 0]
    arrays: dict[str, object] = {
        "keypoints": (np.random.default_rng(0).uniform(100, 300, (joints, 2)) + drift).astype(np.float32),
        "scores": np.ones((FRAMES, joints), np.float32),
        "timestamps": np.arange(FRAMES) / 30,
        "image_size": np.array([640, 480]),
        "skeleton": skeleton,
    }
    return arrays | changes


@pytest.fixture
def desk(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("skeleton", sorted(SKELETONS))
def test_lift_output_has_3d_for_every_frame(skeleton, desk, tiny_lifter, capsys):
    np.savez("in.npz", **keypoints(skeleton))
    assert main(["in.npz", "--out", "out.npz", "--lifter", str(tiny_lifter)]) == 0
    with np.load("out.npz", allow_pickle=False) as answer:
        assert {name: answer[name].shape for name in answer.files} == {
            "joints3d": (FRAMES, 17, 3),
            "root": (FRAMES, 3),
            "sigma": (FRAMES, 17),
            "timestamps": (FRAMES,),
        }
        assert all(np.isfinite(answer[name]).all() for name in answer.files)
        np.testing.assert_array_equal(answer["timestamps"], np.arange(FRAMES) / 30)
        assert (answer["sigma"] > 0).all()
    assert capsys.readouterr().out == "out.npz: 20 frames\n"


@pytest.mark.parametrize(("options", "fitted"), [([], 60), (["--no-fit"], None)])
def test_summary_line_reports_the_2d_fit(options, fitted, desk, tiny_lifter, capsys):
    long = {name: np.concatenate([keypoints()[name]] * 3) for name in ("keypoints", "scores")}
    np.savez("in.npz", **keypoints(**long, timestamps=np.arange(3 * FRAMES) / 30))
    assert main(["in.npz", "--out", "out.npz", "--lifter", str(tiny_lifter), *options]) == 0
    first, *more = capsys.readouterr().out.splitlines()
    assert first == "out.npz: 60 frames"
    assert [line.split(",")[0] for line in more] == ([f"fit to the 2D keypoints: {fitted} poses"] if fitted else [])


def test_shipped_lifter_puts_a_person_where_the_camera_sees_them(desk, capsys):
    """A standing figure of known size, filmed by a known camera."""
    camera = np.array([[800.0, 0, 320], [0, 800, 240], [0, 0, 1]])
    root = np.array([0.3, 0.1, 4.0])
    pixels = project(STANDING + root, camera).astype(np.float32)
    np.savez("in.npz", **keypoints("h36m17", keypoints=np.tile(pixels, (FRAMES, 1, 1)), intrinsics=camera))
    assert main(["in.npz", "--out", "out.npz", "--quiet"]) == 0
    with np.load("out.npz") as answer:
        np.testing.assert_allclose(np.median(answer["root"], axis=0), root, atol=0.5)
        error = np.linalg.norm(np.median(answer["joints3d"], axis=0) - STANDING, axis=1).mean()
    assert error < 0.15  # m
    assert capsys.readouterr().out == ""


def test_unseen_keypoint_coordinates_have_no_effect(desk, tiny_lifter, capsys):
    scores = np.ones((FRAMES, 17), np.float32)
    scores[5], scores[9, 3] = 0, 0
    answers = []
    for rubbish in (np.nan, 1e6):
        points = keypoints()["keypoints"].copy()
        points[scores == 0] = rubbish
        np.savez("in.npz", **keypoints(keypoints=points, scores=scores))
        assert main(["in.npz", "--out", "out.npz", "--lifter", str(tiny_lifter), "--overwrite"]) == 0
        with np.load("out.npz") as answer:
            answers.append(answer["joints3d"])
    assert np.isfinite(answers[0]).all()
    np.testing.assert_array_equal(*answers)


def test_several_files_go_into_a_folder(desk, tiny_lifter, capsys):
    for name in ("a.npz", "b.npz"):
        np.savez(name, **keypoints())
    Path("gaps.npz").touch()
    np.savez("gaps.npz", **keypoints(timestamps=np.arange(FRAMES) / 30 + (np.arange(FRAMES) > 9) * 5.0))
    assert main(["a.npz", "b.npz", "gaps.npz", "--out", "answers", "--lifter", str(tiny_lifter)]) == 0
    assert sorted(path.name for path in Path("answers").glob("*.npz")) == ["a.npz", "b.npz", "gaps.npz"]
    assert Path("answers/a.npz").read_bytes() == Path("answers/b.npz").read_bytes()


def with_nan() -> np.ndarray:
    points = keypoints()["keypoints"].copy()
    points[3, 5] = np.nan
    return points


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scores": None}, "key 'scores' is missing; needed: keypoints, scores, timestamps, image_size, skeleton"),
        ({"keypoints": np.zeros((FRAMES, 16, 2))}, "keypoints: expected shape (20, 17, 2), got (20, 16, 2)"),
        ({"scores": np.ones((FRAMES - 1, 17))}, "scores: expected shape (20, 17), got (19, 17)"),
        ({"keypoints": with_nan()}, "keypoints: NaN or infinity in frame 3, joint 5"),
        ({"scores": np.full((FRAMES, 17), np.nan)}, "scores: must lie in 0 to 1, got nan"),
        ({"scores": np.full((FRAMES, 17), 87.0)}, "scores: must lie in 0 to 1, got 87"),
        ({"timestamps": np.arange(FRAMES)[::-1] / 30}, "timestamps: must increase, but frame 1 is at 0.6 s"),
        ({"keypoints": keypoints()["keypoints"] / 640}, "keypoints: all lie within 2 px of the corner; expected px"),
        ({"timestamps": np.zeros(FRAMES)}, "timestamps: must increase"),
        ({"timestamps": np.full(FRAMES, np.inf)}, "timestamps: NaN or infinity at frame 0"),
        ({"timestamps": np.zeros(0)}, "timestamps: empty"),
        ({"skeleton": "coco18"}, "unknown name 'coco18'; known: h36m17, coco17, halpe26, blazepose33"),
        ({"skeleton": 17}, "skeleton: expected one name"),
        ({"image_size": np.array([640, -1])}, "image_size: expected width and height"),
        ({"intrinsics": np.eye(4)}, "intrinsics: expected shape (3, 3), got (4, 4)"),
        ({"intrinsics": np.zeros((3, 3))}, "intrinsics: expected [[fx, 0, cx]"),
        ({"keypoints": np.array([None, {}])}, "contains pickled objects"),
        ({"keypoints": np.array(["a"])}, "keypoints: expected numbers"),
    ],
)
def test_invalid_keypoints_give_a_one_line_error(changes, words, desk, tiny_lifter, capsys):
    arrays = keypoints() | changes
    np.savez("in.npz", **{name: value for name, value in arrays.items() if value is not None})
    assert main(["in.npz", "--out", "out.npz", "--lifter", str(tiny_lifter)]) == 1
    line = error_line(capsys)
    assert line.startswith("error: in.npz: ")
    assert words in line
    assert not Path("out.npz").exists()


def test_frame_numbers_given_as_times_give_a_warning(desk):
    np.savez("in.npz", **keypoints(timestamps=np.arange(FRAMES)))
    program = "import sys; from pose_apps.lift import main; sys.exit(main())"
    call = [sys.executable, "-c", program, "in.npz"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        "warning: in.npz: times: frames are 1 s apart; expected seconds, not frame numbers or milliseconds\n"
    )


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "no keypoints"),
        (["none.npz"], 2, "none.npz: no such file"),
        (["text.npz"], 1, "text.npz: not a readable .npz file"),
        (["cut.npz"], 1, "cut.npz: not a"),
        (["crc.npz"], 1, "crc.npz: not a ZIP file, or a damaged one (Bad CRC-32"),
        (["in.npz", "--out", "in.npz", "--overwrite"], 2, "would replace an input"),
        (["in.npz", "--out", "text.npz"], 2, "text.npz exists; give --overwrite"),
        (["in.npz", "sub/in.npz", "--out", "folder"], 2, "two inputs would both be written to folder/in.npz"),
        (["in.npz", "--lifter", "magic"], 2, "magic is neither a file nor one of offline, stream"),
        (["in.npz", "--lifter", "TINY", "--lookahead", "4"], 2, "lookahead"),
        (["in.npz", "--lookahead", "-1"], 2, "lookahead: -1 is out of range; allowed: 0 to 600"),
        (["in.npz", "--fps", "30"], 2, "--fps: applies only to JSON keypoints; an .npz file has its own timestamps"),
        (
            ["in.npz", "--image-size", "640x480"],
            2,
            "--image-size: applies only to JSON keypoints",
        ),
        (["in.npz", "--device", "tpu"], 2, "--device: expected one of auto, cpu, cuda, got tpu"),
        (["in.npz", "--lifter", "TINY", "--out", "/proc/nowhere/out.npz"], 1, "/proc/nowhere: "),
    ],
)
def test_invalid_arguments_give_a_one_line_error(arguments, status, words, desk, tiny_lifter, capsys):
    np.savez("in.npz", **keypoints())
    Path("text.npz").write_text("hello")
    Path("sub").mkdir()
    np.savez("sub/in.npz", **keypoints())
    whole = Path("in.npz").read_bytes()
    Path("cut.npz").write_bytes(whole[: len(whole) // 2])
    with zipfile.ZipFile("in.npz") as archive:
        place = archive.getinfo("keypoints.npy").header_offset + 300
    Path("crc.npz").write_bytes(whole[:place] + b"\xff\xff" + whole[place + 2 :])
    before = sorted(os.listdir())
    assert main([str(tiny_lifter) if word == "TINY" else word for word in arguments]) == status
    assert words in error_line(capsys)
    assert sorted(os.listdir()) == before


def test_world_option_writes_world_coordinates(desk, capsys):
    """A standing figure before a camera that looks down, at a height that is known."""
    c, s = np.cos(np.radians(15)), np.sin(np.radians(15))
    tilt = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    camera = np.array([[800.0, 0, 320], [0, 800, 240], [0, 0, 1]])
    pixels = project(STANDING @ tilt.T + np.array([0.3, 0.0, 4.0]), camera).astype(np.float32)
    arrays = keypoints("h36m17", keypoints=np.tile(pixels, (FRAMES, 1, 1)), intrinsics=camera)
    np.savez("in.npz", **arrays)
    assert main(["in.npz", "--out", "out.npz", "--world", "--pitch", "-15", "--height", "1.8"]) == 0
    table = load_poses("out.npz")
    assert table.world_info.world.found_by == "given"
    assert table.world_info.heights == {1: (1.8, 0.0)}
    feet = table.placed.joints[:, [3, 6], 1]
    assert np.abs(feet - 0.08).max() < 0.1
    world = table.world_info.world
    placed = world.place(table.root[:, None] + table.joints3d)
    np.testing.assert_allclose(placed, table.placed.joints, atol=1e-3)
    assert capsys.readouterr().out.startswith("world: gravity from --pitch and --roll; the camera is")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pitch", "3"], "--pitch: requires world coordinates; give --world"),
        (
            ["--world", "--height", "tall"],
            "--height: expected metres, such as 1.82, or by id of the person, such as 1:1.82,2:1.65; got 'tall'",
        ),
        (["--world", "--height", "182"], "--height: 182 m is out of range; allowed: 0.4 to 2.75"),
        (["--world", "--height", "1:1.8,7:1.7"], "--height: no person has the id 7; ids: 1"),
        (["--world", "--height", "1:1.8,1:1.7"], "--height: '1:1.8,1:1.7' contains two heights for 1"),
    ],
)
def test_invalid_world_options_give_a_one_line_error(options, words, desk, tiny_lifter, capsys):
    np.savez("in.npz", **keypoints())
    assert main(["in.npz", "--lifter", str(tiny_lifter), *options]) == 2
    assert capsys.readouterr().err == f"error: {words}\n"


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1] * FRAMES + [2] * FRAMES, "extract a person with: pose-prepare sequence --source in.npz --person 1 --out"),
        ([3] * (FRAMES - 1), "extract a person with: pose-prepare sequence --source in.npz --person 3 --out"),
        ([], "contains no person"),
    ],
)
def test_multi_person_result_as_input_explains_the_remedy(ids, message, desk, capsys):
    rows = {name: np.ones((len(ids), 17, *rest), np.float32) for name, rest in (("keypoints", (2,)), ("scores", ()))}
    np.savez("in.npz", **keypoints(**rows, id=np.array(ids, np.int64)))
    assert main(["in.npz", "--out", "out.npz"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: in.npz: ")
    assert message in said


@pytest.mark.parametrize("out", ["out.txt", "new-folder"])
def test_output_must_be_npz_or_an_existing_folder(out, desk, capsys):
    np.savez("in.npz", **keypoints())
    assert main(["in.npz", "--out", out]) == 2
    assert capsys.readouterr().err == f"error: --out {out}: expected a .npz file, or a folder that exists\n"
    assert [path.name for path in desk.iterdir()] == ["in.npz"]


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    entries = [
        {"image_id": f, "track_id": t, "keypoints": rng.uniform(50, 400, 51).tolist()} for f in range(9) for t in (4, 6)
    ]
    (tmp_path / "people.json").write_text(json.dumps(entries))
    return tmp_path


def test_json_input_writes_one_file_per_person(results, tiny_lifter, capsys):
    call = ["people.json", "--fps", "30", "--image-size", "640x480", "--lifter", str(tiny_lifter)]
    assert main(call) == 0
    assert capsys.readouterr().out == "people-3d-person4.npz: 9 frames\npeople-3d-person6.npz: 9 frames\n"
    with np.load("people-3d-person6.npz") as answer:
        assert answer["joints3d"].shape == (9, 17, 3)
        np.testing.assert_allclose(answer["timestamps"], np.arange(9) / 30)
    assert main(call) == 2
    assert "people-3d-person4.npz exists" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["640", "0x480", "640 x 480"])
def test_invalid_image_size_is_rejected(results, capsys, size):
    assert main(["people.json", "--fps", "30", "--image-size", size]) == 2
    assert "expected width x height in px, such as 1920x1080" in capsys.readouterr().err
