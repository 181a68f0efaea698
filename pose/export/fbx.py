"""FBX, converted from GLB by Blender: its Python module `bpy`, or an installed `blender`."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pose.body.tracks import Track
from pose.errors import PoseError
from pose.export import glb
from pose.export.format import Notes, PersonFormat
from pose.utils.whole_file import whole_file

_SCRIPT = Path(__file__).with_name("blender_fbx.py")
_TIMEOUT_S = 3600.0  # timeout of Blender
_MAX_ERROR_CHARS = 300  # characters of Blender's output in an error


def _blender() -> list[str]:
    """Return the command that runs a script in Blender."""
    if find_spec("bpy") is not None:
        return [sys.executable]
    if (program := shutil.which("blender")) is not None:
        return [program, "--background", "--factory-startup", "--python-exit-code", "1", "--python"]
    raise PoseError("format fbx needs Blender: pip install 'pose-run[fbx]' (Python 3.11), or put blender on the PATH")


def check() -> None:
    """Check that Blender is installed.

    Raises:
        PoseError: If Blender is not installed.
    """
    _blender()


def write(track: Track, target: Path) -> Notes:
    """Write the track of one person to the FBX file `target`, and return notes for the export summary.

    Raises:
        PoseError: If Blender is not installed or fails.
    """
    recording, command = track.recording, _blender()
    start, times = float(recording.timeline.times[0]), track.times
    rate = 30.0 if len(times) < 2 else float(f"{1 / np.median(np.diff(times)):.6g}")
    with TemporaryDirectory() as folder, whole_file(target) as hidden:
        source, output = Path(folder) / "scene.glb", Path(folder) / "scene.fbx"
        _, note, *_ = glb.write(recording, [track.person], source)
        arguments = [
            str(source),
            str(output),
            *(f"{value:.6f}" for value in (rate, times[0] - start, times[-1] - start)),
        ]
        try:
            run = subprocess.run(
                [*command, str(_SCRIPT), "--", *arguments],
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise PoseError(f"{target}: Blender did not finish within {_TIMEOUT_S:.0f} s") from error
        if run.returncode or not output.is_file():
            raise PoseError(
                f"{target}: Blender failed: {' '.join((run.stderr or run.stdout).split())[-_MAX_ERROR_CHARS:]}"
            )
        hidden.write_bytes(output.read_bytes())
    hidden_note = ["hidden (scale 0) in gaps"] if track.gaps else []
    return [f"{rate:.6g} frames per second, resampled by Blender; {note.partition(': ')[2]}", *hidden_note]


FORMAT = PersonFormat(".fbx", write, uniform=False, extra="fbx", check=check, options=("rig", "foot_lock"))
