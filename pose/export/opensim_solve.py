"""Scaling, inverse kinematics and dynamics of a folder for OpenSim, by OpenSim's own tools (the package `opensim`)."""

import math
import subprocess
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from pose.body.ground_forces import GRAVITY
from pose.errors import PoseError
from pose.export import opensim_setup as setup
from pose.structures.types import F64
from pose.utils.whole_file import write_whole

FILES = (
    setup.MODEL, "scaled.osim", "scale-factors.xml", "id.sto", "moments.csv", "ik.mot", "ik_marker_errors.sto",
)  # fmt: skip
_ERRORS = "ik_ik_marker_errors.sto"  # as the tool names it


def solve_package(folder: Path, model: Path) -> list[str]:
    """Scale `model` to the markers of a folder, solve for angles and moments, and return notes on the residuals.

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
    names, rows = _table(folder / FILES[-1])
    rms, largest = (rows[:, names.index(f"marker_error_{kind}")] for kind in ("RMS", "max"))
    error = 1000 * math.sqrt(float(np.mean(rms**2)))
    notes = [f"solved by OpenSim: marker error {error:.0f} mm RMS, at most {1000 * largest.max():.0f} mm in a frame"]
    if (folder / "id.sto").exists():
        notes.append(_moments(folder))
    return notes


def _moments(folder: Path) -> str:
    """Write the joint moments per kg of body mass to `moments.csv`; return a note on the residual force."""
    names, rows = _table(folder / "id.sto")
    turning = [at for at, name in enumerate(names) if name.endswith("_moment") and not name.startswith("pelvis")]
    lines = [",".join(["time", *(f"{names[at]}_nm_per_kg" for at in turning)])]
    lines += [",".join([f"{row[0]:.6f}", *(f"{row[at] / setup.MASS:.4f}" for at in turning)]) for row in rows]
    write_whole(folder / "moments.csv", "\n".join([*lines, ""]))
    force = rows[:, [names.index(f"pelvis_t{axis}_force") for axis in "xyz"]]
    share = math.sqrt(float((force**2).sum(axis=1).mean())) / (setup.MASS * GRAVITY)
    return f"joint moments in moments.csv; residual force {100 * share:.0f} % of the body weight RMS"


def _table(path: Path) -> tuple[list[str], F64]:
    """Return the names of the columns of a file of OpenSim, and its values (T, columns)."""
    _, _, rest = path.read_text(encoding="utf-8").partition("endheader\n")
    lines = [line.split() for line in rest.splitlines() if line.strip()]
    if len(lines) < 2:
        raise PoseError(f"{path}: OpenSim solved no frame")
    return lines[0], np.array(lines[1:], np.float64)
