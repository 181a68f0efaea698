"""`pose-batch`, as a user calls it, on short real clips."""

import json
import os
import signal
import subprocess
import time
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from batch_results import lines_of, results_of
from pose_apps.batch.command import BatchConfig, default_workers, main, make_job
from pose_apps.clip import RunConfig
from pose_apps.run import main as run_main
from short_clips import beginning

from pose.config import PipelineConfig
from pose.utils.written_files import RECORD

pytestmark = pytest.mark.usefixtures("at_hand")
QUICK = ("--formats", "json,npz", "--workers", "1")


@pytest.fixture
def clips(videos, tmp_path) -> Path:
    """A folder with two good clips and a bad one."""
    beginning(videos / "dance.mp4", tmp_path / "in" / "dance.mp4", 0.3)
    beginning(videos / "squats.mp4", tmp_path / "in" / "day" / "squats.mp4", 0.3)
    (tmp_path / "in" / "bad.mp4").write_text("no video")
    return tmp_path / "in"


@pytest.fixture
def batch(tmp_path):
    def call(*arguments: object) -> int:
        return main([*map(str, arguments), "--out", str(tmp_path / "out")])

    return call


@pytest.mark.usefixtures("in_this_process")
def test_an_index_lists_the_analyses_of_all_clips(clips, batch, tmp_path, capsys):
    assert batch(clips, *QUICK, "--analyse") == 1  # one is bad
    page = tmp_path / "out" / "analysis.html"
    assert capsys.readouterr().out.endswith(f"analysis of all clips: {page}\n")
    text = page.read_text(encoding="utf-8")
    assert text.count("no measures") == 2, "the clips are too short"
    assert 'href="day/squats/analysis.html"' in text
    assert "not a video" in text
    assert batch(clips, *QUICK, "--analyse") == 1, "it is written again"
    assert page.read_text(encoding="utf-8") == text


def test_batch_results_equal_pose_run_and_the_manifest_lists_them(clips, batch, tmp_path, capsys):
    assert batch(clips, "--workers", "2") == 1  # one is bad
    said = capsys.readouterr()
    assert said.err == ""
    assert "3 clips, " in said.out
    assert "1 failed" in said.out
    assert "bad.mp4: not a video" in said.out
    lines = lines_of(tmp_path / "out")
    assert {name: line["status"] for name, line in lines.items()} == {
        "bad": "failed",
        "dance": "ok",
        "day/squats": "ok",
    }
    for name, clip in (("dance", clips / "dance.mp4"), ("day/squats", clips / "day" / "squats.mp4")):
        alone = tmp_path / "alone" / name
        call = ["--video", str(clip), "--out", str(alone), "--threads", "1"]
        assert run_main([*call, "--quiet"]) == 0
        assert results_of(tmp_path / "out" / name) == results_of(alone)
        document = json.loads((alone / "poses.json").read_text())
        assert lines[name]["frames"] == len(document["frames"])
        assert lines[name]["people"] == 1
        check_facts(lines[name], document)
        assert lines[name]["outputs"] == [f"{name}/{file}" for file in ("poses.json", "poses.npz", "overlay.mp4")]
    assert not (tmp_path / "out" / "bad").exists()


def check_facts(line, document):
    """What the manifest says of a clip is what its results say."""
    source, frames = document["source"], document["frames"]
    duration = frames[-1]["time"] - frames[0]["time"] + 1 / source["fps"]
    expected = {"width": source["width"], "height": source["height"], "fps": source["fps"]}
    assert line["video"] == expected | {"duration": pytest.approx(duration, abs=1e-4)}
    people = [person for frame in frames for person in frame["people"]]
    quality = line["quality"]
    assert quality["sigma_mm"] == pytest.approx(np.mean([person["sigma"] for person in people]), abs=0.1)
    motion = document["camera_motion"]
    assert quality["camera_motion"] == motion["kind"]
    ranges = [motion[axis] for axis in ("pan", "tilt", "roll")]
    assert quality["motion"]["rotation_degrees"] == pytest.approx(max(ranges), abs=0.01)
    assert quality["motion"]["known"] == pytest.approx(motion["known"], abs=1e-3)
    assert (quality["frames_without_people"], quality["doubtful"]) == (0, document["world"]["doubtful"])
    assert 0.3 < quality["confidence"] <= 1
    assert line["version"] == version("pose-run")
    assert abs(datetime.now(UTC) - datetime.fromisoformat(line["date"])) < timedelta(days=1)


@pytest.mark.usefixtures("in_this_process")
def test_repeated_batch_processes_only_missing_or_changed_clips(clips, batch, tmp_path, videos, capsys):
    (clips / "bad.mp4").unlink()
    out = tmp_path / "out"
    assert batch(clips, *QUICK) == 0
    first, states = results_of(out), {path: path.stat().st_mtime_ns for path in out.rglob("poses.*")}

    def written_anew():
        return sorted(
            str(path.relative_to(out)) for path in out.rglob("poses.*") if path.stat().st_mtime_ns != states.get(path)
        )

    assert batch(clips, *QUICK) == 0
    assert "2 of them already done" in capsys.readouterr().out
    assert written_anew() == []
    (clips / "dance.mp4").touch()  # the content is what it was
    (out / "day" / "squats" / "poses.npz").unlink()
    assert batch(clips, *QUICK) == 0
    assert written_anew() == ["day/squats/poses.json", "day/squats/poses.npz"]
    assert lines_of(out)["dance"]["signature"][2] == (clips / "dance.mp4").stat().st_mtime_ns
    assert lines_of(out)["day/squats"]["cached"] == "everything"
    assert results_of(out) == first
    beginning(videos / "dance.mp4", clips / "dance.mp4", 0.2)
    states = {path: path.stat().st_mtime_ns for path in out.rglob("poses.*")}
    assert batch(clips, *QUICK) == 0
    assert written_anew() == ["dance/poses.json", "dance/poses.npz"]
    assert batch(clips, *QUICK, "--no-repair") == 0
    assert {name: line["cached"] for name, line in lines_of(out).items()} == {"dance": "people", "day/squats": "people"}


@pytest.mark.usefixtures("in_this_process")
def test_truncated_clip_keeps_its_frames_and_is_listed_as_failed(videos, batch, tmp_path, capsys):
    """The index in front and the end missing, as a download that broke off leaves it."""
    clip = beginning(videos / "dance.mp4", tmp_path / "in" / "dance.mp4", 1.0, front=True)
    clip.write_bytes(clip.read_bytes()[: clip.stat().st_size * 2 // 3])
    assert batch(clip, *QUICK) == 1
    line = lines_of(tmp_path / "out")["dance"]
    assert line["status"] == "failed"
    assert line["error"].endswith("; the results contain the frames before")
    assert line["outputs"] == ["dance/poses.json", "dance/poses.npz"]
    assert line["frames"] > 5


def test_time_limit_ends_the_clip_but_not_the_batch(videos, clips, batch, tmp_path, capsys):
    (clips / "walk.mp4").symlink_to(videos / "walk-by.mp4")
    assert batch(clips / "walk.mp4", *QUICK, "--time-limit", "0.5") == 1
    line = lines_of(tmp_path / "out")["walk"]
    assert line["error"] == "exceeded the time limit of 0.5 s"
    left = results_of(tmp_path / "out" / "walk") if (tmp_path / "out" / "walk").exists() else {}
    assert not [name for name in left if ".new-" not in name]  # the next call removes the killed worker's folder


def children(process: int) -> list[int]:
    """Workers of a pose-batch: they run Python's spawn."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                command = (stat.parent / "cmdline").read_bytes()
                found += [int(stat.parent.name)] if b"spawn_main" in command else []
        except OSError:
            continue
    return found


def alive(process: int) -> bool:
    stat = Path(f"/proc/{process}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def waited_for(condition, seconds: float = 300.0):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


@pytest.fixture
def started(command_line, weights_dir, tmp_path):
    def start(*arguments: object) -> subprocess.Popen:
        words = command_line("batch", *arguments, "--out", tmp_path / "out")
        environment = {**os.environ, "POSE_WEIGHTS_DIR": str(weights_dir)}
        return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


@pytest.mark.slow
def test_killed_worker_costs_one_attempt(videos, started, tmp_path):
    process = started(videos / "dance.mp4", *QUICK, "--end", 3)
    worker = waited_for(lambda: list((tmp_path / "out").glob("dance/.new-*")) and children(process.pid))[0]
    os.kill(worker, signal.SIGKILL)
    _, errors = process.communicate(timeout=400)
    assert (process.returncode, errors) == (0, "")
    line = lines_of(tmp_path / "out")["dance"]
    assert (line["status"], line["attempts"], line["frames"]) == ("ok", 2, 90)
    made = sorted(path.name for path in (tmp_path / "out" / "dance").iterdir())
    assert made == [RECORD, "poses.json", "poses.npz"]


@pytest.mark.slow
@pytest.mark.usefixtures("usual_signals")
def test_ctrl_c_keeps_finished_clips_and_ends_all_workers(videos, clips, started, tmp_path):
    (clips / "bad.mp4").unlink()
    (clips / "day" / "squats.mp4").unlink()
    process = started(clips, videos / "walk-by.mp4", *QUICK, "--workers", "2")
    waited_for(lambda: (tmp_path / "out" / "manifest.jsonl").exists())
    workers = children(process.pid)
    assert workers
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 130
    assert errors == "interrupted: 1 of 2 clips finished and kept; run the command again for the rest\n"
    waited_for(lambda: not any(map(alive, workers)))
    assert list(lines_of(tmp_path / "out")) == ["dance"]


def test_input_folder_is_rejected_as_output_folder(tmp_path, capsys):
    (tmp_path / "clip.mp4").write_text("no video")
    assert main([str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "those in --out are ignored; choose another folder with --out" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["clip.mp4"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "no clips: give files, folders"),
        (["none.mp4"], "none.mp4: no such file or folder"),
        (["{clips}", "--shard", "3/3"], "--shard: invalid shard '3/3'"),
        (["{clips}", "--formats", "xml"], "'xml' is unknown"),
        (["{clips}", "--workers", "0"], "workers: 0 is out of range"),
        (["{clips}", "--address", "auto"], "--address: applies only to Ray; add --engine ray"),
        (["{clips}", "--max-peple", "3"], "did you mean --max-people?"),
    ],
)
def test_invalid_arguments_give_a_one_line_error(arguments, words, clips, batch, tmp_path, capsys):
    assert batch(*(word.format(clips=clips) for word in arguments)) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert words in said.err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("in_this_process")
def test_empty_shard_prints_a_note(batch, tmp_path, capsys):
    clip = tmp_path / "in" / "clip.mp4"
    clip.parent.mkdir()
    clip.write_text("no video")
    statuses, lines = [], []
    for index in range(2):
        statuses.append(batch(clip, "--shard", f"{index}/2"))
        lines.append(capsys.readouterr().out.splitlines()[-1])
    empty = statuses.index(0)
    assert statuses[1 - empty] == 1, "one shard has the clip, which is not a video"
    assert lines[empty] == f"note: --shard {empty}/2: none of the clips belongs to this shard"


def test_default_workers_follow_cores_and_memory(tmp_path, tiny_lifter, monkeypatch):
    config = PipelineConfig(lifter=str(tiny_lifter), threads=2)
    job = make_job(tmp_path, BatchConfig(out=str(tmp_path)), RunConfig(), config)
    monkeypatch.setattr("pose.utils.resources.available_cores", lambda: 8)
    monkeypatch.setattr("pose.utils.resources.available_megabytes", lambda: 64_000.0)
    assert default_workers(job) == 4
    monkeypatch.setattr("pose.utils.resources.available_megabytes", lambda: 3_000.0)
    assert default_workers(job) == 2
    monkeypatch.setattr("pose.utils.resources.available_megabytes", lambda: 100.0)
    assert default_workers(job) == 1


@pytest.mark.usefixtures("in_this_process")
def test_the_manifest_has_no_passwords_of_addresses(batch, tmp_path, capsys):
    assert batch("http://me:SECRET@127.0.0.1:9/clip.mp4?token=SECRET") == 1
    written = [path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert "http://127.0.0.1:9/clip.mp4" in "".join(written)
    assert "SECRET" not in "".join([*capsys.readouterr(), *written])
