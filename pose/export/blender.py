"""Conversion between GLB and FBX by Blender: its Python module `bpy`, or an installed `blender`."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from pose.errors import PoseError
from pose.utils.shown import shown

_SCRIPT = Path(__file__).with_name("blender_fbx.py")
_TIMEOUT_S = 3600.0  # timeout of Blender
_MAX_ERROR_CHARS = 300  # characters of Blender's output in an error


def blender() -> list[str]:
    """Return the command that runs a script in Blender; PoseError if Blender is not installed."""
    if find_spec("bpy") is not None:
        return [sys.executable]
    if (program := shutil.which("blender")) is not None:
        return [program, "--background", "--factory-startup", "--python-exit-code", "1", "--python"]
    raise PoseError("FBX needs Blender: pip install 'pose-run[fbx]' (Python 3.11), or put blender on the PATH")


def converted(source: Path, target: Path, rate: float = 30.0, start: float = 0.0, end: float = 0.0) -> None:
    """Convert GLB to FBX of `rate` frames/s from `start` to `end` s, or the reverse, to a file that does not exist.

    Raises:
        PoseError: If Blender is not installed, fails, or takes longer than an hour.
    """
    with TemporaryDirectory() as folder:
        output = Path(folder) / f"scene{target.suffix}"
        words = [str(source), str(output), *(f"{value:.6f}" for value in (rate, start, end))]
        call = [*blender(), str(_SCRIPT), "--", *words]
        try:
            run = subprocess.run(call, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise PoseError(f"{source}: Blender did not finish within {_TIMEOUT_S:.0f} s") from error
        if run.returncode or not output.is_file():
            message = " ".join((run.stderr or run.stdout).split())[-_MAX_ERROR_CHARS:]
            raise PoseError(f"{source}: Blender failed: {shown(message)}")
        target.write_bytes(output.read_bytes())
