"""`pose-run`, as a user calls it, on real clips."""

import json
import os
import re
import signal
from pathlib import Path

import av
import jsonschema
import numpy as np
import pytest
from command_errors import error_line
from pose_apps.run import main
from pose_apps.support.outputs import default_folder
from short_clips import beginning

from pose.results import WRITERS, load_poses
from pose.results.json import SCHEMA_PATH
from pose.results.writer import PartFile, WriterContext
from pose.utils.work_folder import folder_lock, work_folder
from pose.utils.written_files import RECORD


@pytest.fixture(autouse=True)
def at_hand(weights_setting, monkeypatch) -> None:
    for name, value in weights_setting.items():
        monkeypatch.setenv(name, value)


def decoded(path: Path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def test_pose_run_writes_tracked_3d_of_a_clip(call_without_torch, dance, tmp_path):
    """Without torch, as the base install is."""
    done = call_without_torch("run", dance, "--out", tmp_path / "out", "--end", 1.5, "--profile")
    assert (done.returncode, done.stderr) == (0, "")
    assert "45 frames, 1.5 s of video, 1 person" in done.stdout
    assert "field of view of 55 degrees assumed" not in done.stdout, "a detail"
    assert str(tmp_path / "out" / "overlay.mp4") in done.stdout
    table = done.stdout[done.stdout.index("\nstage  ") :].splitlines()
    assert {"detect", "keypoints", "lift", "write", "overlay"} <= {line.split()[0] for line in table if line}
    rows = {line[:34].strip(): line.split() for line in table[2:]}
    for stage in ("decode (in parallel)", "draw", "encode (in parallel)"):
        assert float(rows[f"overlay: {stage}"][-1]) > 0  # ms a frame; in seconds a fast machine's would be 0.00
    worked = {stage: float(row[-2]) for stage, row in rows.items()}
    total = worked.pop("processor time in total")
    assert abs(sum(worked.values()) - total) < 0.01 * len(worked)

    poses = load_poses(tmp_path / "out" / "poses.npz")
    assert len(poses) == 45
    assert poses.complete
    assert set(poses.id.tolist()) == {1}
    np.testing.assert_allclose(poses.timestamps, np.arange(45) / 30, atol=1e-6)
    height = poses.joints3d[..., 1].max(axis=1) - poses.joints3d[..., 1].min(axis=1)
    assert 1.0 < np.median(height) < 2.2  # m, of a dancer
    assert (poses.root[:, 2] > 0.5).all()

    document = json.loads((tmp_path / "out" / "poses.json").read_text())
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text()))
    assert [frame["index"] for frame in document["frames"]] == list(range(45))
    assert {model["role"]: model["name"] for model in document["models"]} == {
        "detector": "rtmdet",
        "estimator": "blazepose",
        "ensemble": "movenet-thunder",
        "lifter": "offline",
    }
    assert len(decoded(tmp_path / "out" / "overlay.mp4")) == 45


def test_same_input_twice_gives_the_same_files(dance, tmp_path, tiny_lifter, capsys):
    for name in ("a", "b"):
        call = ["--video", dance, "--out", str(tmp_path / name), "--end", "0.3", "--lifter", str(tiny_lifter)]
        assert main(call) == 0
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == [RECORD, "overlay.mp4", "poses.json", "poses.npz"]
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_start_and_end_keep_the_clip_timestamps(dance, tmp_path, tiny_lifter, capsys):
    common = ["--video", dance, "--formats", "npz", "--lifter", str(tiny_lifter)]
    assert main([*common, "--out", str(tmp_path), "--start", "1", "--end", "1.2"]) == 0
    times = load_poses(tmp_path / "poses.npz").timestamps
    np.testing.assert_allclose(times, 1 + np.arange(6) / 30, atol=1e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECORD, "poses.npz"]


def test_clip_without_people_succeeds_with_a_note(empty_clip, tmp_path, tiny_lifter, capsys):
    assert main(["--video", str(empty_clip), "--out", str(tmp_path / "out"), "--lifter", str(tiny_lifter)]) == 0
    printed = capsys.readouterr()
    assert "no person was detected" in printed.out
    poses = load_poses(tmp_path / "out" / "poses.npz")
    assert (len(poses), len(poses.id)) == (12, 0)
    assert len(decoded(tmp_path / "out" / "overlay.mp4")) == 12


def test_summary_reports_low_confidence_and_untracked_people(videos, tmp_path, tiny_lifter, capsys):
    call = ["--video", str(videos / "street.mp4"), "--formats", "npz", "--lifter", str(tiny_lifter), "--overwrite"]
    assert main([*call, "--out", str(tmp_path), "--end", "2", "--verbose"]) == 0
    said = capsys.readouterr().out
    everybody = load_poses(tmp_path / "poses.npz")
    assert len(set(everybody.id.tolist())) >= 5
    assert f" {len(set(everybody.id.tolist()))} people" in said
    assert re.search(r"\n\d+% of the joints have low 2D confidence", said)
    assert main([*call, "--out", str(tmp_path), "--end", "1", "--max-people", "2"]) == 0
    assert re.search(
        r"\ndetected but not tracked: up to \d (person|people) at a time \(limit: --max-people 2\)\n",
        capsys.readouterr().out,
    )


def test_fallback_detector_is_reported_in_the_summary(videos, weights_dir, tmp_path, tiny_lifter, monkeypatch, capsys):
    for name in ("blazepose-detector.tflite", "blazepose-landmark-full.tflite"):
        (tmp_path / name).symlink_to(weights_dir / name)
    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "pose.networks.weights.download.unavailable_reason", lambda url, schemes, timeout: "no way to the web"
    )
    call = ["--video", str(videos / "street.mp4"), "--formats", "json", "--out", str(tmp_path / "out"), "--end", "1"]
    assert main([*call, "--lifter", str(tiny_lifter)]) == 0
    said = capsys.readouterr().out
    assert "The detector is BlazePose, which misses distant and half occluded people." in said
    assert "are not available (no way to the web)" in said
    document = json.loads((tmp_path / "out" / "poses.json").read_text())
    assert document["settings"]["detector"] == "blazepose"


def test_image_folder_is_processed_at_the_given_rate(dance, tmp_path, tiny_lifter, capsys):
    folder = tmp_path / "frames"
    folder.mkdir()
    with av.open(dance) as container:
        for number, frame in zip(range(5), container.decode(video=0), strict=False):
            frame.to_image().save(folder / f"{number}.png")
    assert main(["--video", str(folder), "--image-fps", "10", "--formats", "npz", "--lifter", str(tiny_lifter)]) == 0
    poses = load_poses(tmp_path / "frames-poses" / "poses.npz")
    np.testing.assert_allclose(poses.timestamps, np.arange(5) / 10)
    assert len(poses.id) == 5


def test_max_people_and_intrinsics_reach_the_results(videos, tmp_path, tiny_lifter, capsys):
    call = ["--video", str(videos / "street.mp4"), "--formats", "json", "--lifter", str(tiny_lifter), "--end", "1"]
    assert main([*call, "--out", str(tmp_path), "--max-people", "1", "--intrinsics", "900,910,480,270"]) == 0
    document = json.loads((tmp_path / "poses.json").read_text())
    assert document["camera"]["status"] == "known"
    assert document["camera"]["intrinsics"] == [[900, 0, 480], [0, 910, 270], [0, 0, 1]]
    assert max(len(frame["people"]) for frame in document["frames"]) == 1
    assert "assumed" not in capsys.readouterr().out


class IdsWriter(WriterContext):
    """An output format of a few lines: the ids of each frame."""

    def __init__(self, path, info):
        self._part, self._text = PartFile(path), f"{info.source}\n"

    def write(self, result):
        self._text += f"{result.index} {result.people.ids.tolist()}\n"

    def finish(self, complete=True):
        if not self._part.closed:
            self._part.write_and_truncate(0, self._text.encode())

    def commit(self):
        if not self._part.closed:
            self._part.commit()

    def abort(self):
        if not self._part.closed:
            self._part.discard()


def test_new_output_format_needs_one_writer_entry(dance, tmp_path, tiny_lifter, monkeypatch, capsys):
    monkeypatch.setitem(WRITERS, "ids", IdsWriter)
    call = ["--video", str(dance), "--lifter", str(tiny_lifter), "--end", "0.1", "--no-overlay", "--quiet"]
    assert main([*call, "--out", str(tmp_path / "asked"), "--formats", "ids"]) == 0
    assert (tmp_path / "asked" / "poses.ids").read_text().startswith(f"{dance}\n0 [1]\n1 [1]\n")
    assert main([*call, "--out", str(tmp_path / "not asked")]) == 0
    assert not (tmp_path / "not asked" / "poses.ids").exists()
    assert main([*call, "--out", str(tmp_path), "--formats", "idz"]) == 2
    assert "'idz' is unknown; known: json, npz, ids, overlay" in capsys.readouterr().err


def test_existing_results_are_kept_without_overwrite(dance, tmp_path, tiny_lifter, capsys):
    call = ["--video", dance, "--out", str(tmp_path), "--end", "0.1", "--formats", "json", "--lifter", str(tiny_lifter)]
    (tmp_path / "poses.json").write_text("mine")
    assert main(call) == 2
    assert f"{tmp_path / 'poses.json'} exists; give --overwrite" in capsys.readouterr().err
    assert (tmp_path / "poses.json").read_text() == "mine"
    assert main([*call, "--overwrite", "--quiet"]) == 0
    assert len(json.loads((tmp_path / "poses.json").read_text())["frames"]) == 3
    assert capsys.readouterr().out == ""


def test_output_folder_of_a_running_process_is_rejected(dance, tmp_path, tiny_lifter, capsys):
    call = ["--video", dance, "--out", str(tmp_path), "--end", "0.1", "--formats", "json", "--lifter", str(tiny_lifter)]
    with folder_lock(tmp_path), work_folder(tmp_path, []) as anothers:
        assert main(call) == 2
        assert anothers.is_dir()
    assert (
        capsys.readouterr().err
        == f"error: {tmp_path}: another run is writing to it; wait until it ends, or choose another with --out\n"
    )
    assert list(tmp_path.iterdir()) == []
    assert main(call) == 0


def test_overwrite_removes_all_files_of_the_older_result(dance, tmp_path, tiny_lifter, capsys):
    """No file of one run beside those of another."""
    call = ["--video", dance, "--out", str(tmp_path), "--end", "0.1", "--formats", "json", "--lifter", str(tiny_lifter)]
    assert main([*call, "--formats", "npz,overlay"]) == 0
    (tmp_path / "notes.txt").write_text("mine")
    capsys.readouterr()
    assert main(call) == 2
    assert f"{tmp_path / 'poses.npz'} exists; give --overwrite" in capsys.readouterr().err
    assert main([*call, "--overwrite"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECORD, "notes.txt", "poses.json"]
    assert f"results: {tmp_path / 'poses.json'}\n" in capsys.readouterr().out


def test_overwrite_keeps_or_renames_user_files(dance, tmp_path, tiny_lifter, capsys):
    call = ["--video", dance, "--out", str(tmp_path), "--end", "0.1", "--formats", "json", "--lifter", str(tiny_lifter)]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "overlay.mp4").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "poses.npz").write_text("mine")
    (tmp_path / "poses.json").mkdir()
    (tmp_path / ".new-work").mkdir()
    (tmp_path / ".new-work" / "thesis.txt").write_text("mine")
    assert main([*call, "--overwrite"]) == 0
    said = f"{tmp_path / 'poses.json'} was not written by pose-run; it is kept as poses.json.kept"
    assert capsys.readouterr().err == f"warning: {said}\n"
    assert (tmp_path / "poses.npz").read_text() == "mine"
    assert (tmp_path / "overlay.mp4").is_symlink()
    assert (tmp_path / "poses.json.kept").is_dir()
    assert (tmp_path / ".new-work" / "thesis.txt").read_text() == "mine"
    assert main([*call, "--overwrite"]) == 0
    assert capsys.readouterr().err == ""


def test_older_result_stays_until_the_new_one_is_complete(dance, tmp_path, tiny_lifter, monkeypatch, capsys):
    call = ["--video", dance, "--out", str(tmp_path), "--end", "0.2", "--lifter", str(tiny_lifter), "--overwrite"]
    assert main(call) == 0
    old = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(old) == [RECORD, "overlay.mp4", "poses.json", "poses.npz"]

    def interrupted(*arguments: object) -> None:
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == old
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("pose_apps.clip.draw_overlay", interrupted)
    capsys.readouterr()
    assert main([*call, "--start", "0.1"]) == 130
    kept = f"3 of 3 frames kept, without overlay in {tmp_path / 'unfinished'}; the earlier result is unchanged"
    assert capsys.readouterr().err == f"interrupted: {kept}\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == old
    unfinished = load_poses(tmp_path / "unfinished" / "poses.npz")
    assert unfinished.complete
    assert len(unfinished) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [*sorted(old), "unfinished"]


def test_printed_config_round_trips(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["--config", "fast", "--max-people", "3", "--end", "2", "--print_config"])
    assert end.value.code == 0
    first = capsys.readouterr().out
    assert "max_people: 3\n" in first
    (tmp_path / "mine.yaml").write_text(first)
    with pytest.raises(SystemExit):
        main(["--config", str(tmp_path / "mine.yaml"), "--print_config"])
    assert capsys.readouterr().out == first


@pytest.mark.parametrize("config", [["--config", "mine.yaml"], ["--config=mine.yaml"]])
@pytest.mark.parametrize("first", [True, False])
def test_options_override_the_config_file_in_any_order(config, first, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("max_people: 2\nthreads: 1\nvideo: null\n")
    own = ["--video", "clip.mp4", "--max-people", "3"]
    with pytest.raises(SystemExit):
        main([*config, *own, "--print_config"] if first else [*own, *config, "--print_config"])
    shown = capsys.readouterr().out
    assert {"max_people: 3", "threads: 1", "video: clip.mp4"} <= set(shown.splitlines())


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        ([], 2, "no video: give a video file"),
        (["none.mp4"], 2, "none.mp4: no such file"),
        (["dance.mp4", "text.mp4"], 1, "text.mp4: not a video"),
        (["dance.mp4", "--video", "dance.mp4"], 2, "--video and dance.mp4: name one video"),
        (["--video=text.mp4", "dance.mp4"], 2, "--video and dance.mp4: name one video"),
        (["--config"], 2, "--config: expected one argument"),
        (["--video", "none.mp4"], 2, "none.mp4: no such file"),
        (["--video", "emptyfolder"], 2, "; use pose-batch for a folder of videos"),
        (["--video", "nothing/*.png"], 2, "no image matches"),
        (["--video", "text.mp4"], 1, "text.mp4: not a video"),
        (["--video", "zero.mp4"], 1, "zero.mp4: the file is empty"),
        (["--video", "sound.mp4"], 1, "sound.mp4: the file has only sound"),
        (["--video", "99"], 2, "camera 99: no such device"),
        (["--video", "http://127.0.0.1:9/clip.mp4"], 1, "http://127.0.0.1:9/clip.mp4: connection refused"),
        (["--video", "dance.mp4", "--start", "99"], 2, "--start: 99 s is not before the end"),
        (["--video", "dance.mp4", "--start", "0.01", "--end", "0.02"], 1, "no frames found between 0.01 s"),
        (["--video", "dance.mp4", "--end", "-1"], 2, "end: -1.0 is out of range; allowed: at least 0"),
        (["--video", "dance.mp4", "--formats", "json,xml"], 2, "'xml' is unknown; known: json, npz, overlay"),
        (["--video", "dance.mp4", "--formats", "overlay", "--no-overlay"], 2, "no format given"),
        (["--video", "dance.mp4", "--detector", "magic"], 2, "--detector: expected one of auto, "),
        (["--video", "dance.mp4", "--lifter", "magic"], 2, "magic is neither a file nor one of"),
        (["--video", "dance.mp4", "--lifter", "text.mp4"], 1, "text.mp4: not a readable lifter checkpoint"),
        (["--video", "dance.mp4", "--max-people", "0"], 2, "--max-people: 0 is out of range; allowed: 1 to 1000"),
        (["--video", "dance.mp4", "--intrinsics", "500,500"], 2, "intrinsics: expected shape (3, 3)"),
        (["--video", "dance.mp4", "--intrinsics", "text.mp4"], 2, "intrinsics: cannot read 'text.mp4'; allowed: fx"),
        (["--video", "dance.mp4", "--intrinsics", "0,1,2,3"], 2, "fx and fy above 0"),
        (["--vidoe", "dance.mp4"], 2, "unknown option '--vidoe': did you mean --video?"),
        (["--config", "wrong.yaml"], 2, "unknown key 'max_peple': did you mean max_people?"),
        (["--config", "binary.yaml"], 2, "--config: binary.yaml: not a text file"),
        (["--config", "zero.mp4"], 2, "--config: zero.mp4: expected lines such as"),
        (["--video", ""], 2, "no video: give a video file"),
        (["--video", "http://nowhere.invalid/a.mp4"], 1, "http://nowhere.invalid/a.mp4: no connection"),
        (["--video", "dance.mp4", "--max-people", "some"], 2, "--max-people: expected a whole number, got some"),
        (["--video", "dance.mp4", "--detector-model", "no.tflite"], 2, "--detector-model: no.tflite is neither a file"),
        (["--video", "dance.mp4", "--estimator", "mmpose"], 2, "--estimator-model: this stage has no default weights"),
        (["--config", "none.yaml"], 2, "--config: none.yaml is neither a file nor a preset; presets: "),
        (["--config", "broken.yaml"], 2, "--config: broken.yaml: not readable as YAML: "),
        (["--video", "dance.mp4", "--out", "text.mp4"], 1, "text.mp4: is not a folder"),
        (["--video", "dance.mp4", "--out", "/proc/nowhere"], 1, "/proc/nowhere: cannot be created"),
        (["--video", "dance.mp4", "--device", "cuda"], 1, "cuda was requested"),
    ],
)
def test_invalid_input_gives_a_one_line_error(arguments, status, words, desk, tiny_lifter, capsys):
    lifter = [] if "--lifter" in arguments else ["--lifter", str(tiny_lifter)]
    assert main([*arguments, *lifter]) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert words in printed.err
    assert not (desk / "dance").exists()


@pytest.fixture
def empty_clip(tmp_path) -> Path:
    path = tmp_path / "wall.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=24)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        for shade in range(12):
            frame = av.VideoFrame.from_ndarray(np.full((64, 96, 3), 100 + shade, np.uint8))
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path


@pytest.fixture
def desk(tmp_path, monkeypatch, videos) -> Path:
    """A working folder with a good clip and many bad files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    Path("dance.mp4").symlink_to(videos / "dance.mp4")
    Path("emptyfolder").mkdir()
    Path("text.mp4").write_text("not a film\n" * 100)
    Path("zero.mp4").touch()
    Path("wrong.yaml").write_text("max_peple: 3\n")
    Path("broken.yaml").write_text("a: [1,\n")
    Path("binary.yaml").write_bytes(b"\xff\xfe\x00\x01")
    with av.open("sound.mp4", "w") as container:
        stream = container.add_stream("aac", rate=48000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        frame.rate = 48000
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return tmp_path


def test_damaged_weight_file_gives_a_one_line_error(dance, tmp_path, tiny_lifter, monkeypatch, capsys):
    (tmp_path / "rtmdet-nano-person-320.onnx").write_bytes(b"damaged")
    monkeypatch.setenv("POSE_WEIGHTS_DIR", f"{tmp_path}{os.pathsep}{os.environ['POSE_WEIGHTS_DIR']}")
    assert main(["--video", dance, "--out", str(tmp_path / "out"), "--lifter", str(tiny_lifter)]) == 1
    assert f"{tmp_path / 'rtmdet-nano-person-320.onnx'} is damaged" in error_line(capsys)
    assert not (tmp_path / "out").exists()


def test_truncated_video_keeps_decoded_frames_and_fails(dance, tmp_path, tiny_lifter, capsys):
    whole, cut = tmp_path / "whole.mp4", tmp_path / "cut.mp4"
    beginning(Path(dance), whole, 2, front=True)
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    assert main(["--video", str(cut), "--out", str(tmp_path / "out"), "--lifter", str(tiny_lifter)]) == 1
    printed = capsys.readouterr()
    assert "cut short" in printed.err or "stopped after" in printed.err
    assert printed.err.splitlines()[-1].startswith("error: ")
    poses = load_poses(tmp_path / "out" / "poses.npz")
    assert 5 < len(poses) < 58
    assert len(decoded(tmp_path / "out" / "overlay.mp4")) == len(poses)


@pytest.mark.parametrize(
    ("video", "folder"),
    [
        ("clips/dance.mp4", "clips/dance"),
        ("clips/dance", "clips/dance-poses"),
        ("frames/img*.png", "frames-poses"),
        ("https://example.org/films/walk.mp4?key=1", "walk-poses"),
        ("rtsp://example.org:554", "example.org-poses"),
        ("0", "camera0-poses"),
    ],
)
def test_default_folder_is_beside_the_video_and_named_after_it(video, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert default_folder(video).resolve() == tmp_path / folder
