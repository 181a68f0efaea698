"""`pose-webcam`, as a user calls it, on real clips at their own speed."""

import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from command_errors import error_line
from pose_apps.support.options import gathered
from pose_apps.webcam.command import main
from pose_apps.webcam.report import FORMAT, VERSION, ProblemLog, write_report
from short_clips import beginning

from pose.config import PipelineConfig
from pose.errors import PoseError
from pose.live import LiveLoop, PushedFrames
from pose.live.sources import Captured
from pose.results import load_poses
from pose.structures.skeletons import H36M17
from pose.video import open_source


@pytest.fixture(autouse=True)
def at_hand(weights_setting, monkeypatch) -> None:
    for name, value in weights_setting.items():
        monkeypatch.setenv(name, value)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)


class Patient:
    """The first frames of a file at its own speed, or as fast as the loop is: none is dropped, on whatever machine."""

    message, most_waiting = "", 4  # what a loop's own mailbox holds

    def __init__(self, spec, count):
        self._source, self._count = open_source(spec), count
        self.name, self.fps = self._source.name, self._source.info.fps
        self.loop, self.results = None, None

    def frames(self, stop):
        start = time.monotonic()
        for frame in islice(self._source, self._count):
            while (status := self.loop.status()).frames_in - status.processed >= self.most_waiting:
                if stop.wait(0.005):
                    return
            if stop.wait(max(0.0, start + frame.time - time.monotonic())):
                return
            at = time.monotonic()
            start = at - frame.time
            yield Captured(frame, at)

    def close(self):
        self._source.close()


@pytest.fixture
def patient(monkeypatch, dance):
    """What a run reads, 45 frames of the dancer, and in `results` what its loop shows of them."""
    source = Patient(dance, 45)

    def loop_of(config, pipeline, world):
        source.loop = LiveLoop(pipeline, source, config, world=world)
        source.results = source.loop.subscribe(maxlen=100)
        return source.loop

    monkeypatch.setattr("pose_apps.webcam.run.open_loop", loop_of)
    return source


@pytest.mark.usefixtures("patient")
def test_headless_report_agrees_with_the_sent_messages(dance, tmp_path, capsys):
    """With a receiver of the messages, which sees what the report counts."""
    path = tmp_path / "report.json"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(1)
        port = receiver.getsockname()[1]
        arguments = ["--headless", "--source", dance, "--lookahead", "2", "--report", str(path)]
        assert main([*arguments, "--udp", f"127.0.0.1:{port}"]) == 0
        messages = []
        while True:
            try:
                messages.append(json.loads(receiver.recv(65536)))
            except TimeoutError:
                break
    report = json.loads(path.read_text())
    assert (report["format"], report["version"], report["source"]) == (FORMAT, VERSION, dance)
    assert (report["frames_in"], report["processed"], report["dropped"]) == (45, 45, 0)
    assert report["seconds"] >= 44 / 30
    # seconds are rounded to 0.001, the rate to 0.01: together 0.0155 at most where 45 frames take 44 / 30 s or more
    assert report["fps"] == pytest.approx(report["processed"] / report["seconds"], abs=0.016)
    latency = report["latency_ms"]
    assert (
        60 < latency["median"] <= latency["p95"] <= latency["p99"] <= latency["max"] + 0.25
    )  # two frames of look-ahead
    assert report["lifter_delay_ms"] > 50
    assert report["people"] == {"ids": 1, "most_at_a_time": 1}
    assert report["memory_mib"]["highest_after"] > 100
    assert (report["settings"]["lifter"], report["settings"]["lookahead"]) == ("sliding", 2)
    assert report["messages"] == []
    poses = [message for message in messages if message["type"] == "pose"]
    newest, final = ([one["frame"] for one in poses if one["final"] is wanted] for wanted in (False, True))
    assert 0 < len(newest) <= report["processed"]
    assert len(final) > 0
    assert final == sorted(final)
    assert {message["id"] for message in poses} == {1}
    said = capsys.readouterr().out
    assert f"{report['processed']} processed" in said
    assert "latency from capture to 3D: median" in said


def test_seconds_option_ends_a_headless_run(dance, tmp_path, monkeypatch):
    """Its time begins when its loop has, and that here with a first frame, which a busy machine lets wait."""
    start = LiveLoop.start

    def start_and_wait(loop):
        start(loop)
        while loop.running and not loop.status().processed:
            time.sleep(0.01)
        return loop

    monkeypatch.setattr(LiveLoop, "start", start_and_wait)
    path = tmp_path / "report.json"
    assert main(["--headless", "--source", dance, "--seconds", "1", "--report", str(path)]) == 0
    report = json.loads(path.read_text())
    assert report["seconds"] >= 1
    assert 0 < report["frames_in"] <= min(30 * report["seconds"] + 2, 544)  # it plays at its own speed, 18 s long
    assert report["frames_in"] == report["processed"] + report["dropped"]


def test_report_omits_memory_where_the_system_lacks_it(monkeypatch):
    """Windows has neither `resource` nor /proc: the module must load there."""
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.setattr("pose.utils.resources._STATUS", Path("/nowhere"))
    usual = importlib.import_module("pose_apps.webcam.report")
    monkeypatch.setattr("pose_apps.webcam.report", usual)  # loading it sets it, which is taken back at the end
    monkeypatch.delitem(sys.modules, "pose_apps.webcam.report")
    report = importlib.import_module("pose_apps.webcam.report")
    assert report is not usual
    loop = LiveLoop(SimpleNamespace(config=PipelineConfig(), device="cpu", skeleton=H36M17), PushedFrames("test"))
    measured = report.Watch(loop).report()
    assert measured["memory_mib"] == {"settled": None, "highest_after": None, "end": None}
    assert "memory" not in report.summary(
        measured | {"processed": 1, "latency_ms": dict.fromkeys(measured["latency_ms"], 1)}
    )


def wait_for_recording(process: subprocess.Popen, folder: Path) -> None:
    """Until it holds some seconds."""
    end = time.monotonic() + 300
    while not any(path.stat().st_size > 50_000 for path in folder.glob("live-*/unfinished-*.json")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.usefixtures("usual_signals")
def test_ctrl_c_finishes_the_recording_and_the_report(command_line, dance, tmp_path):
    words = command_line(
        "webcam", "--headless", "--loop", "--source", dance, "--record", "--out", tmp_path, "--report", tmp_path / "r"
    )
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    wait_for_recording(process, tmp_path)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=200)
    assert (process.returncode, err) == (130, "interrupted\n")
    (folder,) = tmp_path.glob("live-*")
    assert sorted(path.name for path in folder.iterdir()) == ["poses.json", "poses.npz", "video.mp4"]
    poses = load_poses(folder / "poses.npz")
    assert len(poses) > 5
    assert f"recorded {len(poses)} frames into {folder}" in out
    # The loop may answer a frame before the recording begins, and one while the interrupt closes it.
    report = json.loads((tmp_path / "r").read_text())
    lost = report["lost"].get("recording", 0)  # where the disk was too slow
    assert 0 <= report["processed"] - len(poses) - lost <= 2


def test_stream_is_opened_after_the_networks_are_loaded(monkeypatch, capsys):
    done = []

    def connect(*_: object) -> None:
        done.append("connect")
        raise PoseError("cannot read http://127.0.0.1:9/video: connection refused")

    monkeypatch.setattr("pose_apps.webcam.run.load_pipeline", lambda config, intrinsics: done.append("load"))
    monkeypatch.setattr("pose_apps.webcam.run.open_loop", connect)
    assert main(["--headless", "--no-world", "--source", "http://127.0.0.1:9/video"]) == 1
    assert done == ["load", "connect"]
    assert capsys.readouterr().err == "error: cannot read http://127.0.0.1:9/video: connection refused\n"


@pytest.mark.slow
def test_recording_on_a_full_disk_fails_and_keeps_what_fits(dance, tmp_path, capsys, room_for):
    """Of `ulimit -f`; the run itself goes on to its end. A busy machine records few frames, of 5 kB each."""
    with room_for(40_000):
        status = main(["--headless", "--source", dance, "--seconds", "8", "--record", "--out", str(tmp_path)])
    assert status == 1
    (folder,) = tmp_path.iterdir()
    assert {path.name for path in folder.iterdir()} - {"video.mp4"} == {"poses.json", "poses.npz"}
    poses = load_poses(folder / "poses.npz")
    said = capsys.readouterr()
    assert re.search(rf"recorded {len(poses)} frames into {folder}(, without video.mp4)?; it ended early: ", said.out)
    assert "warning: the recording: " in said.err  # while it happens
    assert said.err.splitlines()[-1].startswith("error: the recording ended early: ")
    assert "file too large" in said.err.lower()


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("", 2, "is a folder; name a file"),
        ("no/report.json", 2, "--report: no such folder: "),
        ("full", 1, "File too large"),
    ],
)
def test_unwritable_report_path_fails_at_the_start(path, status, words, dance, tmp_path, capsys, room_for):
    with room_for(1000 if path == "full" else 10**9):
        assert main(["--headless", "--source", dance, "--report", str(tmp_path / path)]) == status
    said = capsys.readouterr().err
    assert said.startswith("error: --report: ")
    assert words in said
    assert list(tmp_path.iterdir()) == []


def test_report_that_cannot_be_saved_is_printed(tmp_path, capsys, room_for):
    with room_for(10), pytest.raises(PoseError, match=r"--report: .*report\.json: File too large"):
        write_report(tmp_path / "report.json", {"format": FORMAT})
    assert json.loads(capsys.readouterr().out) == {"format": FORMAT}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("signal_name", ["SIGHUP", "SIGKILL"])
@pytest.mark.usefixtures("usual_signals")
def test_a_recording_survives_a_closed_terminal_and_is_finished_after_a_kill(
    command_line, videos, dance, tmp_path, signal_name, capsys
):
    if not hasattr(signal, signal_name):
        pytest.skip("this system has no such signal")
    words = command_line("webcam", "--headless", "--loop", "--source", dance, "--record", "--out", tmp_path)
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_recording(process, tmp_path)
    process.send_signal(getattr(signal, signal_name))
    process.communicate(timeout=200)
    (folder,) = tmp_path.glob("live-*")
    if signal_name == "SIGHUP":
        assert process.returncode == 130
    else:
        clip = beginning(videos / "dance.mp4", tmp_path / "clip.mp4", 0.2)
        assert main(["--headless", "--source", str(clip), "--out", str(tmp_path)]) == 0
        assert f"note: the recording {folder} was cut short; finished with" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["poses.json", "poses.npz", "video.mp4"]
    poses = load_poses(folder / "poses.npz")
    assert poses.complete == (signal_name == "SIGHUP")
    assert len(poses) > 5
    assert abs(len(json.loads((folder / "poses.json").read_text())["frames"]) - len(poses)) <= 1


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--headless", "--source", "no.mp4"], 2, "cannot read no.mp4: no such file"),
        (["--headless", "--source", "99"], 2, "cannot read camera 99"),
        (["--headless", "--source", "rtsp://:0/y"], 2, "rtsp:// must be followed by a host, and a port above 0"),
        (["--headless", "--source", "ftp://x/y"], 2, "cannot read ftp:// addresses"),
        (["--headless", "--web"], 2, "--headless: cannot be combined with --web"),
        (["--udp", "robot:9000", "--web"], 2, "--udp: cannot be combined with --web"),
        (["--headless", "--source", "CLIP", "--udp", "127.0.0.1:0"], 2, "--udp: port 0 is not valid"),
        (
            ["--headless", "--source", "CLIP", "--udp", "255.255.255.255:9000"],
            2,
            "is a broadcast address; name one receiver",
        ),
        (["--headless", "--source", "CLIP", "--udp", "9000"], 2, "--udp: invalid address '9000': expected HOST:PORT"),
        (
            ["--headless", "--source", "CLIP", "--ws", "host:port"],
            2,
            "--ws: invalid address 'host:port': expected [HOST:]PORT",
        ),
        (["--headless", "--port", "8080"], 2, "--port: applies only to --web"),
        (["--keep-hours", "1"], 2, "--keep-hours: applies only to --web"),
        (["--headless", "--token", "0123456789abcdef"], 2, "--token: applies only to --web"),
        (["--headless", "--seconds", "0"], 2, "seconds: 0.0 is out of range; allowed: at least 0.1"),
        (["--headless", "--sorce", "0"], 2, "did you mean --source?"),
        (["--headless", "--config", "quick"], 2, "quick"),
        ([], 1, "cannot open a window (no display found): use --web"),
    ],
)
def test_invalid_arguments_fail_before_networks_are_loaded(arguments, status, words, capsys, monkeypatch, dance):
    for module in ("live_outputs", "run"):
        monkeypatch.setattr(
            f"pose_apps.webcam.{module}.load_pipeline", lambda config, intrinsics: pytest.fail("networks were loaded")
        )
    assert main([dance if word == "CLIP" else word for word in arguments]) == status
    assert words in error_line(capsys)


@pytest.mark.parametrize("way", [["--headless"], ["--web", "--port", "0"], []], ids=["headless", "web", "window"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ahead", "auto", "--lookahead", "2"], "--ahead and --lookahead cannot be combined"),
        (["--ahead", "soon"], "--ahead: 'soon' is neither auto nor a number of milliseconds"),
        (["--ahead", "900"], "--ahead: 900 ms is out of range; allowed: 0 to 500"),
        (["--bridge", "3"], "--bridge: 3.0 is out of range; allowed: 0 to 1"),
    ],
)
def test_invalid_prediction_options_give_a_one_line_error(dance, capsys, monkeypatch, way, options, words):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    assert main([*way, "--source", dance, *options]) == 2
    assert error_line(capsys).startswith(f"error: {words}")


def test_recording_with_ahead_contains_the_shown_predictions(dance, patient, tmp_path, capsys):
    words = ["--headless", "--source", dance, "--ahead", "66", "--record", "--out", str(tmp_path)]
    report = tmp_path / "report.json"
    assert main([*words, "--report", str(report)]) == 0
    capsys.readouterr()
    table = load_poses(next(tmp_path.glob("live-*/poses.npz")))
    shown = [live.result for live in patient.results]
    assert [result.people.index for result in shown] == list(range(45))
    assert sum(len(result.people) for result in shown) > 40
    for recorded, result in zip(table, shown, strict=True):
        np.testing.assert_array_equal(recorded.people.ids, result.people.ids)
        np.testing.assert_allclose(recorded.people.keypoints, result.people.keypoints, atol=0.01)
        np.testing.assert_allclose(recorded.poses.joints, result.poses.joints, atol=1e-4)
    seen = table.scores.max(axis=1) > 0
    assert seen.any()
    assert table.ahead[seen] == pytest.approx(0.066)
    assert json.loads(report.read_text())["ahead_ms"] == 66


def test_offline_lifter_is_rejected_for_live_use(dance, capsys):
    assert main(["--headless", "--source", dance, "--lifter", "offline"]) == 2
    words = "--lifter: offline processes whole windows and cannot stream; use lifter sliding"
    assert capsys.readouterr().err == f"error: {words}\n"


def test_ongoing_problems_are_logged_once(capsys):
    log = ProblemLog()
    for trouble, lost in (("", 0), ("network is unreachable", 1), ("network is unreachable", 9), ("", 12), ("", 12)):
        log.update("--udp", trouble, lost)
    for seconds in (2, 1):
        log.update("camera 0", f"camera 0 is gone (unplugged), reconnecting in {seconds} s")
    for told in ("", "camera 0 sends 48x96 now: track ids restart", ""):
        log.update("camera 0", told)
    assert capsys.readouterr().err.splitlines() == [
        "warning: --udp: network is unreachable",
        "note: --udp continues; 12 lost",
        "warning: camera 0 is gone (unplugged)",
        "note: camera 0 is back",
        "warning: camera 0 sends 48x96 now: track ids restart",
    ]
    assert log.latest == [
        "--udp: network is unreachable",
        "camera 0 is gone (unplugged)",
        "camera 0 sends 48x96 now: track ids restart",
    ]


TWO = ["--headless", "--source", "CLIP", "--source", "7"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--headless", "--source", "CLIP", "--source", "CLIP"], "given twice; each camera needs its own source"),
        (["--headless", "--source", "CLIP", "--source", "AGAIN"], "given twice; each camera needs its own source"),
        (["--headless", *(f"--source={number}" for number in range(9))], "--source: got 9; allowed: 1 to 8"),
        ([*TWO, "--ahead", "50"], "--ahead: not available with several sources"),
        ([*TWO, "--bridge", "1"], "--bridge: not available with several sources"),
        ([*TWO, "--hands"], "--hands: not available with several sources"),
        ([*TWO, "--height", "1:1.8"], "several sources take one height"),
        ([*TWO, "--cameras", "none.json"], "--cameras none.json: no such file"),
        (["--headless", "--source", "CLIP", "--cameras", "none.json"], "--cameras: needs several cameras"),
    ],
)
def test_options_unsupported_for_several_cameras_are_rejected(arguments, words, dance, capsys):
    clip = Path(dance)
    named = {"CLIP": dance, "AGAIN": str(clip.parent / ".." / clip.parent.name / clip.name)}
    assert main([named.get(word, word) for word in arguments]) == 2
    assert words in error_line(capsys)


@pytest.mark.parametrize("way", [["--headless"], ["--web", "--port", "0"]], ids=["headless", "web"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not a calibration"),
        ("{", "not a calibration"),
        ('{"cameras": []}', "contains no camera"),
        ('{"cameras": [{"name": "a"}]}', "has 1 camera (a) for 2 videos (view-a, view-b)"),
        ('{"cameras": [{"name": "view-a"}, {"name": "view-b"}]}', "'matrix' is missing"),
    ],
)
def test_invalid_calibration_fails_before_networks_are_loaded(
    videos, tmp_path, monkeypatch, capsys, way, content, words
):
    monkeypatch.setattr("pose.pipeline.Pipeline", None)  # not needed yet
    file = tmp_path / "cameras.json"
    file.write_text(content)
    sources = [word for name in "ab" for word in ("--source", str(videos / "two-people" / f"view-{name}.mp4"))]
    assert main([*way, *sources, "--cameras", str(file)]) == 1
    said = error_line(capsys)
    assert said.startswith(f"error: --cameras {file}: ")
    assert words in said


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--web --source 0 --loop --source 1", "--web --source 0 1 --loop"),
        ("--source=a --source=b --web", "--source a b --web"),
        ("--source a b --web", "--source a b --web"),
        ("--web", "--web"),
        ("--web --source", "--web --source"),
    ],
)
def test_repeated_sources_are_joined(words, expected):
    assert gathered(words.split(), "--source") == expected.split()


def test_a_report_does_not_replace_a_source(dance, tmp_path, capsys):
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(Path(dance).read_bytes())
    assert main(["--headless", "--source", str(clip), "--report", str(clip)]) == 2
    assert "would replace an input" in error_line(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["clip.mp4"]
