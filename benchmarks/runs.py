"""Whole runs of `pose-run` on a clip, for `benchmarks.presets` and `benchmarks.two_views`."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import POSE_RUN, processor_seconds

Result = dict[str, NDArray[Any]]


def run(
    clip: Path, options: str, folder: Path, *, overlay: bool = False, program: str = POSE_RUN
) -> tuple[Result, float, float]:
    """Run `pose-run`, or other code, on a clip; return its result, its time and its processor time in s."""
    formats = "npz,overlay" if overlay else "npz"
    fixed = ["--cache", "off", "--quiet", "--formats", formats, "--overwrite"]
    words = [sys.executable, "-c", program, str(clip), *fixed, *options.split(), "--out", str(folder / "out")]
    before, start = processor_seconds(), time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds, processor = time.perf_counter() - start, processor_seconds() - before
    if overlay != (folder / "out" / "overlay.mp4").exists():
        raise RuntimeError("the overlay was not written as asked")
    with np.load(folder / "out" / "poses.npz") as arrays:
        return dict(arrays), seconds, processor
