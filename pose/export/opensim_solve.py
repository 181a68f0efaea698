"""Scaling and inverse kinematics of a folder for OpenSim, by OpenSim's own tools (the package `opensim`)."""

import math
import subprocess
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from pose.errors import PoseError
from pose.export import opensim_setup as setup

FILES = (setup.MODEL, "scaled.osim", "scale-factors.xml", "ik.mot", "ik_marker_errors.sto")
_ERRORS = "ik_ik_marker_errors.sto"  # as the tool names it


def solve_package(folder: Path, model: Path) -> str:
    """Scale `model` to the markers of a folder, solve for its angles, and return a note on the residuals.

    Raises:
        PoseError: If the package `opensim` is missing, or OpenSim cannot use the model.
    """
    if find_spec("opensim") is None:
        raise PoseError("--solve needs the package opensim: pip install 'pose-run[opensim]'")
    # In a process of its own: OpenSim ends the process on some models, and works in the working directory.
    # -P: the folder of the script has modules with names of the standard library.
    call = [sys.executable, "-P", files("pose.export").joinpath("opensim_tools.py"), model.resolve(), setup.MODEL]
    done = subprocess.run(list(map(str, call)), cwd=folder, capture_output=True, text=True, check=False)
    (folder / "opensim.log").unlink(missing_ok=True)
    if done.returncode or not (folder / _ERRORS).exists():
        said = [line for line in done.stderr.splitlines() if line.strip()]
        reason = said[-1].strip() if said else "see README.txt for the models that work"
        raise PoseError(f"--solve {model}: OpenSim failed: {reason}")
    (folder / _ERRORS).rename(folder / FILES[-1])
    squares, largest = _residuals(folder / FILES[-1])
    rms = math.sqrt(sum(squares) / len(squares))
    return f"solved by OpenSim: marker error {1000 * rms:.0f} mm RMS, at most {1000 * largest:.0f} mm in a frame"


def _residuals(path: Path) -> tuple[list[float], float]:
    """Return the squared RMS marker error of each frame, m2, and the largest error of a marker, m."""
    head, _, rest = path.read_text(encoding="utf-8").partition("endheader\n")
    lines = [line.split() for line in rest.splitlines() if line.strip()]
    columns = lines[0]
    rms, most = columns.index("marker_error_RMS"), columns.index("marker_error_max")
    rows = [[float(value) for value in line] for line in lines[1:]]
    if not rows:
        raise PoseError(f"{path}: OpenSim solved no frame ({head.splitlines()[0]})")
    return [row[rms] ** 2 for row in rows], max(row[most] for row in rows)
