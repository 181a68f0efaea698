"""An environment for the peer, and one run of it."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PEER = Path(__file__).with_name("mediapipe_peer.py")
REQUIREMENTS = ("mediapipe==0.10.21", "av")


def make_environment(folder: Path) -> Path:
    """A new virtual environment in `folder` with the peer in it; the path of its Python. Takes about a minute."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
    return python


def run_peer(python: Path, clip: Path) -> tuple[dict[str, NDArray[np.float64]], float]:
    """What the peer says of a clip (see `mediapipe_peer.py`), and the seconds its whole process took."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.npz"
        start = time.perf_counter()
        subprocess.run([str(python), str(PEER), str(clip), str(result)], check=True, stderr=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
        with np.load(result) as arrays:
            return dict(arrays), seconds
