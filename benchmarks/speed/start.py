"""How soon a command answers: its help, the first sign of life on a terminal, and the first frame of a video.

    POSE_WEIGHTS_DIR=../shared/weights python -m benchmarks.speed start

"first sign" is the time until a command that works writes its first byte to a terminal. "first frame" is `pose-run`
from the call to the first result, files warm. Each figure is the least of the repeats, since other work on the machine
only adds; the processor's seconds beside it mean something on a busy machine, too.
"""

import os
import pty
import signal
import subprocess
import sys
import time
import tomllib
from argparse import ArgumentParser, Namespace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.common.command import VIDEOS
from benchmarks.common.processes import finished

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
# Calls that load what the command works with; they end in an error soon after, or are ended.
WORKING = {
    "pose-run": ["{clip}", "--out", "{folder}/run"],
    "pose-lift": ["nothing.npz"],
    "pose-webcam": ["--web", "--port", "0"],
    "pose-train": ["lifter", "--out", "{folder}/train", "--data.mocap", "nothing.npz"],
    "pose-view": ["nothing.npz", "--save", "{folder}/clip.mp4"],
    "pose-eval": ["sequence", "--keypoints", "nothing.npz", "--gt", "nothing.npz"],
    "pose-export": ["offline", "--format", "torchscript", "--out", "{folder}/lifter.ts"],
}
FIRST_FRAME = """
import os, sys
from pose_apps.run import main
from pose.session import Session
push = Session.push
def timed(self, frame):
    result = push(self, frame)
    os._exit(0)
Session.push = timed
main(sys.argv[1:])
"""


def words(command: str, *arguments: str) -> list[str]:
    module, _, function = SCRIPTS[command].partition(":")
    return [sys.executable, "-c", f"import sys; from {module} import {function}; sys.exit({function}())", *arguments]


def first_byte(command: list[str]) -> float:
    """Seconds until a process has written something to its terminal; it is ended then."""
    ours, theirs = pty.openpty()
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    os.read(ours, 1)
    seconds = time.perf_counter() - start
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.close(ours)
    return seconds


def least(command: list[str], repeats: int) -> tuple[float, float]:
    """Least seconds by the clock and of the processors until a process ends."""
    runs = [finished(command, check=False) for _ in range(repeats)]
    return min(run.seconds for run in runs), min(run.processor for run in runs)


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--clip", type=Path, default=VIDEOS / "dance.mp4")
    parser.add_argument("--repeats", type=int, default=5)


def main(given: Namespace) -> None:
    print("| command | help, s | processor, s | first sign, s |\n|---|---|---|---|")
    for command in SCRIPTS:
        wall, processor = least(words(command, "--help"), given.repeats)
        first = "-"
        if command in WORKING:
            with TemporaryDirectory() as folder:
                arguments = [word.format(clip=given.clip, folder=folder) for word in WORKING[command]]
                first = f"{min(first_byte(words(command, *arguments)) for _ in range(given.repeats)):.2f}"
        print(f"| `{command}` | {wall:.2f} | {processor:.2f} | {first} |", flush=True)
    with TemporaryDirectory() as folder:
        call = [sys.executable, "-c", FIRST_FRAME, str(given.clip), "--out", f"{folder}/run", "--quiet"]
        wall, processor = least(call, given.repeats)
    print(f"\nfirst frame of pose-run: {wall:.2f} s, {processor:.2f} s of the processors")
