"""kill -9 at random moments of `pose-run` and `pose-batch`, then the same call again: as if nothing had happened.

A few in every run of the suite; many with -m slow, or POSE_CRASHES of them.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from batch_results import lines_of, results_of
from pose_apps.batch.command import main as batch_main
from pose_apps.run import main as run_main
from short_clips import beginning

from pose.utils.written_files import RECORD

pytestmark = pytest.mark.usefixtures("at_hand")
MANY = int(os.environ.get("POSE_CRASHES", "25"))


class Crashes:
    """Starts a command in a session of its own, kills it after a part of the time that it takes, and waits for the rest
    of its processes to end by themselves. seconds: that it takes to its end; other work on the machine changes them.
    """

    def __init__(self, command: list[str], weights: Path) -> None:
        self._command = command
        self._environment = {**os.environ, "POSE_WEIGHTS_DIR": str(weights)}

        self.seconds = 0.0

    def whole(self) -> float:
        """Run it to its end; the seconds."""
        begun = time.monotonic()
        done = self._start(self._command).wait(500)
        assert done == 0
        self.seconds = time.monotonic() - begun
        return self.seconds

    def killed(self, share: float, command: list[str] | None = None) -> bool:
        """Whether it was still running after that share of `seconds`, and so killed. command: that does the same."""
        process, begun = self._start(command or self._command), time.monotonic()
        try:
            process.wait(share * self.seconds)
            self.seconds = min(self.seconds, time.monotonic() - begun)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        deadline = time.monotonic() + 200
        while session(process.pid):
            assert time.monotonic() < deadline, "workers outlive pose-batch"
            time.sleep(0.02)
        return process.returncode == -signal.SIGKILL

    def _start(self, command: list[str]) -> subprocess.Popen:
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, env=self._environment, stdout=quiet, stderr=quiet, start_new_session=True)


def session(leader: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[3]) == leader and words[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def nothing_is_half(found: dict[str, bytes], whole: dict[str, bytes]) -> None:
    """What has a real name is as it would be without the kill."""
    for name, data in found.items():
        if "/.new-" not in f"/{name}" and ".part" not in name:
            assert data == whole[name], f"{name} is not whole"


def crash_runs(count: int, seed: int, command_line, videos, weights_dir, tmp_path) -> None:
    out, cache = tmp_path / "out", tmp_path / "cache"
    call = [str(videos / "dance.mp4"), "--config", "fast", "--end", "0.6", "--out", str(out)]
    call += ["--cache", str(cache), "--overwrite", "--quiet"]
    crashes = Crashes(command_line("run", *call), weights_dir)
    seconds = crashes.whole()
    whole = results_of(out)
    assert sorted(whole) == [RECORD, "overlay.mp4", "poses.json", "poses.npz"]
    rng, killed = np.random.default_rng(seed), 0
    for turn in range(count):
        if turn % 3 == 0:  # from nothing; over a cache; over a result and a cache
            for entry in cache.glob("*.entry"):
                entry.unlink()
        if turn % 3 < 2:
            for name in whole:
                (out / name).unlink(missing_ok=True)
        killed += crashes.killed(rng.uniform(0.1, 1.1))
        nothing_is_half(results_of(out), whole)
        assert run_main(call) == 0
        assert results_of(out) == whole, "other results, or something left over"
        assert not list(out.rglob(".new-*")), "left over"
        assert {path.suffix for path in cache.iterdir()} == {".entry"}
    assert killed >= count / 3, "most runs had ended before they were killed"
    print(f"pose-run: {killed} of {count} killed within {seconds:.1f} s, all well")


def crash_batches(count: int, seed: int, command_line, videos, weights_dir, tmp_path) -> None:
    for number in range(3):
        beginning(videos / "dance.mp4", tmp_path / "in" / f"{number}.mp4", 0.3 + number / 10)
    call = [str(tmp_path / "in"), "--config", "fast", "--quiet", "--workers", "2", "--formats", "json,npz"]
    crashes = Crashes(command_line("batch", *call, "--out", tmp_path / "whole"), weights_dir)
    seconds = crashes.whole()
    whole = results_of(tmp_path / "whole")
    assert len(whole) == 9  # three clips: two files and the record of them
    rng, killed = np.random.default_rng(seed), 0
    for turn in range(count):
        out = tmp_path / f"out{turn}"
        again = command_line("batch", *call, "--out", out)
        killed += crashes.killed(rng.uniform(0.1, 1.1), again)
        nothing_is_half(results_of(out) if out.is_dir() else {}, whole)
        assert batch_main([*call, "--out", str(out)]) == 0
        assert results_of(out) == whole, "other results, or something left over"
        assert not list(out.rglob(".new-*")), "left over"
        assert {line["status"] for line in lines_of(out).values()} == {"ok"}
        assert len(lines_of(out)) == 3
    assert killed >= count / 3, "most runs had ended before they were killed"
    print(f"pose-batch: {killed} of {count} killed within {seconds:.1f} s, all well")


@pytest.mark.slow
def test_pose_run_recovers_from_repeated_kill_9(command_line, videos, weights_dir, tmp_path):
    crash_runs(MANY, 3, command_line, videos, weights_dir, tmp_path)


@pytest.mark.slow
def test_pose_batch_recovers_from_repeated_kill_9(command_line, videos, weights_dir, tmp_path):
    crash_batches(MANY, 4, command_line, videos, weights_dir, tmp_path)
