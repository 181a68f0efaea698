"""`pose-run` as a process: its streams, signals, a full disk and a terminal."""

import json
import os
import re
import shlex
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from command_errors import error_line
from pose_apps.run import main

from pose.errors import PoseError
from pose.results import NpzWriter, load_poses
from pose.session import Session
from pose.utils.written_files import RECORD


@pytest.mark.slow
def test_closed_standard_streams_do_not_change_the_results(dance, tmp_path, at_hand, command_line):
    def results(out: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in out.iterdir()}

    arguments = ("--video", dance, "--config", "fast", "--end", "0.1", "--out")
    assert main([*arguments, str(tmp_path / "open")]) == 0
    call = f"{shlex.join(command_line('run', *arguments, tmp_path / 'closed'))} >&- 2>&- <&-"
    done = subprocess.run(call, shell=True, capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    usual = results(tmp_path / "open")
    assert sorted(usual) == [RECORD, "overlay.mp4", "poses.json", "poses.npz"]
    assert results(tmp_path / "closed") == usual


def test_full_disk_gives_a_one_line_error_and_no_files(dance, tmp_path, at_hand, room_for, capsys):
    with room_for(10_000):
        assert main(["--video", dance, "--out", str(tmp_path / "out"), "--end", "0.5", "--quiet"]) == 1
    error = error_line(capsys)
    assert str(tmp_path / "out") in error
    assert "File too large" in error
    assert "/.new-" not in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("earlier", [False, True], ids=["new", "overwrite"])
def test_disk_full_after_the_first_file_leaves_no_partial_result(
    dance, tmp_path, at_hand, monkeypatch, capsys, earlier
):
    """poses.json is complete when poses.npz fails."""
    out = tmp_path / "out"
    call = ["--video", dance, "--out", str(out), "--end", "0.1", "--quiet", "--no-overlay"]
    if earlier:
        assert main(call) == 0
    old = {path.name: path.read_bytes() for path in out.iterdir()} if earlier else {}

    def fail(writer: NpzWriter, complete: bool = True) -> None:
        raise PoseError(f"{out / 'poses.npz'}: No space left on device")

    monkeypatch.setattr(NpzWriter, "finish", fail)
    capsys.readouterr()
    assert main([*call, "--overwrite"]) == 1
    assert capsys.readouterr().err == f"error: {out / 'poses.npz'}: No space left on device\n"
    assert ({path.name: path.read_bytes() for path in out.iterdir()} if out.exists() else {}) == old


@pytest.mark.usefixtures("usual_signals")
def test_interrupt_keeps_finished_frames(dance, tmp_path, at_hand, monkeypatch, capsys):
    tracked, out = Session.tracked, tmp_path / "out"

    def track_and_interrupt(session, frame, **known):
        if frame is not None and frame.index == 60:
            os.kill(os.getpid(), signal.SIGINT)
        return tracked(session, frame, **known)

    monkeypatch.setattr(Session, "tracked", track_and_interrupt)
    assert main(["--video", dance, "--out", str(out)]) == 130
    printed, errors = capsys.readouterr()
    document = json.loads((out / "poses.json").read_text())
    poses = load_poses(out / "poses.npz")
    assert not document["complete"]
    assert not poses.complete
    assert len(poses) == len(document["frames"]) > 10
    assert sorted(path.name for path in out.iterdir()) == [RECORD, "poses.json", "poses.npz"]
    assert f"{len(poses)} frames" in printed
    assert errors.endswith(f"interrupted: {len(poses)} of 545 frames kept, marked incomplete\n")


def seen_on_a_terminal(command: list[str], environment: dict[str, str]) -> str:
    """What a command that succeeds writes to the terminal that its stderr is."""
    terminal, stderr = os.openpty()
    written = bytearray()

    def read() -> None:  # meanwhile: a terminal holds 4 kB, and who writes more waits
        with suppress(OSError):  # how Linux says that the other end is closed
            while part := os.read(terminal, 4096):
                written.extend(part)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        done = subprocess.run(command, env={**os.environ, **environment}, stderr=stderr, timeout=300, check=False)
    finally:
        os.close(stderr)
        reading.join()
        os.close(terminal)
    shown = written.decode()
    assert done.returncode == 0, shown
    return shown


def test_a_terminal_shows_progress(dance, tmp_path, weights_dir, command_line):
    arguments = ("--video", dance, "--out", tmp_path, "--end", 0.3, "--formats", "json")
    environment = {"POSE_WEIGHTS_DIR": str(weights_dir), "COLUMNS": "80"}
    shown = seen_on_a_terminal(command_line("run", *arguments), environment)
    assert re.search(r"poses: 100%.* 9/9 \[.*(frames/s|s/ frames), people 1\]", shown)  # the latter on a busy machine
