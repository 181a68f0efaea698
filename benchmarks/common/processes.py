"""Whole processes: their time, processor time, peak memory and output."""

import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

POSE_RUN = "from pose_apps.run import main; main()"
Result = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Finished:
    """A process that has ended."""

    seconds: float
    processor: float  # s, of the process and of those that it started
    peak_mb: float  # largest resident memory of one of them
    output: str


def finished(command: list[str], *, check: bool = True, **options: Any) -> Finished:
    """Run a process without its error output. options: of `subprocess.Popen`."""
    with TemporaryFile("w+") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL, **options
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if check and process.returncode:
            raise SystemExit(f"{' '.join(command)[:200]}: exit status {process.returncode}")
        output.seek(0)
        unit = 1 if sys.platform == "darwin" else 1024  # bytes
        return Finished(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 1e6, output.read())


def pose_run(clip: Path, options: str, folder: Path, *, overlay: bool = False) -> tuple[Result, Finished]:
    """Run `pose-run` on a clip, without cache."""
    formats = "npz,overlay" if overlay else "npz"
    fixed = ["--cache", "off", "--quiet", "--formats", formats, "--overwrite"]
    done = finished([sys.executable, "-c", POSE_RUN, str(clip), *fixed, *options.split(), "--out", str(folder / "out")])
    if overlay != (folder / "out" / "overlay.mp4").exists():
        raise RuntimeError("the overlay was not written as asked")
    with np.load(folder / "out" / "poses.npz") as arrays:
        return dict(arrays), done


def add_mediapipe(parser: ArgumentParser, required: bool = False) -> None:
    parser.add_argument(
        "--mediapipe", type=Path, required=required, help="Python of an environment with mediapipe==0.10.21 and av"
    )


def mediapipe_loop(python: Path, *words: str) -> Finished:
    """Run a loop of `mediapipe_loops.py` in MediaPipe's environment."""
    return finished([str(python), str(Path(__file__).with_name("mediapipe_loops.py")), *words])


def mediapipe_pose(python: Path, clip: Path) -> tuple[NDArray[np.float64], Finished]:
    """Return MediaPipe's landmarks (T, 33, 4) of a clip, and its process."""
    with TemporaryDirectory() as folder:
        done = mediapipe_loop(python, "pose", str(clip), f"{folder}/result.npz")
        with np.load(f"{folder}/result.npz") as arrays:
            return arrays["landmarks"], done


def commit() -> str:
    """Return the commit of this checkout."""
    return subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
