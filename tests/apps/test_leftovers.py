"""Nothing hidden is left by killed workers, signals and full disks; incomplete results give way to complete ones."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pose_apps.batch.command import _remove_leftovers
from pose_apps.support.outputs import UNFINISHED, plan_outputs

from pose.errors import PoseError
from pose.utils.whole_file import WholeFile
from pose.utils.work_folder import MARKER_NAME, _create, _unlock, work_folder

KILLED = "import sys; from pathlib import Path; from pose.utils.work_folder import _create; import os\n"
KILLED += (
    "folder, lock = _create(Path(sys.argv[1]), ['poses.json']); (folder / 'poses.json').write_text('x'); os._exit(9)"
)


def test_what_killed_workers_left_is_removed(tmp_path):
    clip, empty, own = tmp_path / "clip", tmp_path / "empty", tmp_path / "own"
    for folder in (clip, empty, own):
        folder.mkdir()
    subprocess.run([sys.executable, "-c", KILLED, str(clip)], check=False)
    WholeFile(clip / "poses.glb").path.write_text("half")
    (clip / ".mine.part").write_text("kept")
    used, lock = _create(own, ["poses.json"])
    _remove_leftovers([clip, empty, own, tmp_path / "missing"], [empty, clip])
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "clip", "clip/.mine.part", "own", f"own/{used.name}", f"own/{used.name}/{MARKER_NAME}",
    ], "another process still uses the last one"  # fmt: skip
    _unlock(lock)


def test_a_full_disk_leaves_no_work_folder(tmp_path, monkeypatch):
    def full(path: Path, data: bytes) -> int:
        with path.open("wb"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(PoseError, match="No space left"), work_folder(tmp_path, ["a"]):
        pass
    assert list(tmp_path.iterdir()) == []


CODE = """
import signal, sys, time
from pathlib import Path
from pose.utils.whole_file import whole_file
from pose_apps.support.command import run_command
def main(argv=None):
    with whole_file(Path(sys.argv[1])) as part:
        part.write_text("half")
        print("ready", flush=True)
        time.sleep(60)
sys.exit(run_command(main)())
"""


@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_signals_remove_hidden_files_of_every_command(tmp_path, name, ignored):
    """Also in the background of a script, where Ctrl-C is ignored."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ignored else signal.getsignal(signal.SIGINT)
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, str(tmp_path / "a.glb")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.1)
        process.send_signal(getattr(signal, name))
        assert process.wait(60) == 130
    assert list(tmp_path.iterdir()) == []


def settled(folder, content: str, complete: bool) -> None:
    outputs = plan_outputs("clip.mp4", str(folder), "json", overlay=False)
    with outputs.ready_folder() as written:
        text = json.dumps({"frames": [content]})[:-1] + f',\n"complete": {str(complete).lower()}}}\n'
        written.files["json"].write_text(text)
        outputs.settle(written, complete=complete)


def content_of(path) -> str:
    return json.loads(path.read_text())["frames"][0]


@pytest.mark.parametrize("first", [True, False])
def test_an_incomplete_result_replaces_only_an_incomplete_one(tmp_path, first):
    settled(tmp_path, "first", first)
    settled(tmp_path, "second", False)
    assert content_of(tmp_path / "poses.json") == ("first" if first else "second")
    assert (tmp_path / UNFINISHED / "poses.json").exists() == first
    settled(tmp_path, "third", True)
    assert content_of(tmp_path / "poses.json") == "third"
