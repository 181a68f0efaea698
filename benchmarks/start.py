"""How soon a command answers: its help, the first sign of life on a terminal, and the first frame of a video.

    POSE_WEIGHTS_DIR=../shared/weights python benchmarks/start.py [--clip ../shared/videos/dance.mp4] [--repeats 5]

"first sign" is the time until a command that works writes its first byte to a terminal. "first frame" is `pose-run`
from the call to the first result, files warm. Each figure is the least of the repeats, since other work on the machine
only adds; the processor's seconds beside it mean something on a busy machine, too.
"""

import argparse
import os
import pty
import resource
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
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


def run(command: list[str]) -> tuple[float, float]:
    """Seconds by the clock and of the processors until a process ends."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before, start = used(), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start, used() - before


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clip", default="../shared/videos/dance.mp4")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rounds = range(options.repeats)
    print("| command | help, s | processor, s | first sign, s |\n|---|---|---|---|")
    for command in SCRIPTS:
        helps = [run(words(command, "--help")) for _ in rounds]
        wall, processor = (min(column) for column in zip(*helps, strict=True))
        first = "-"
        if command in WORKING:
            with tempfile.TemporaryDirectory() as folder:
                arguments = [word.format(clip=options.clip, folder=folder) for word in WORKING[command]]
                first = f"{min(first_byte(words(command, *arguments)) for _ in rounds):.2f}"
        print(f"| `{command}` | {wall:.2f} | {processor:.2f} | {first} |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, "-c", FIRST_FRAME, options.clip, "--out", f"{folder}/run", "--quiet"]
        wall, processor = (min(column) for column in zip(*(run(call) for _ in rounds), strict=True))
    print(f"\nfirst frame of pose-run: {wall:.2f} s, {processor:.2f} s of the processors")


if __name__ == "__main__":
    main()
