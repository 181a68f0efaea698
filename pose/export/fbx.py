"""FBX, converted from GLB by Blender."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pose.body.tracks import Track
from pose.export import glb
from pose.export.blender import blender, converted
from pose.export.format import Notes, PersonFormat
from pose.utils.whole_file import whole_file


def check() -> None:
    """Check that Blender is installed; PoseError if Blender is not installed."""
    blender()


def write(track: Track, target: Path) -> Notes:
    """Write a person's track to an FBX file, and return notes; PoseError if Blender is missing or fails."""
    recording = track.recording
    start, times = float(recording.timeline.times[0]), track.times
    rate = 30.0 if len(times) < 2 else float(f"{1 / np.median(np.diff(times)):.6g}")
    with TemporaryDirectory() as folder, whole_file(target) as hidden:
        source, output = Path(folder) / "scene.glb", Path(folder) / "scene.fbx"
        notes = glb.write(recording, [track.person], source)
        converted(source, output, rate, float(times[0]) - start, float(times[-1]) - start)
        hidden.write_bytes(output.read_bytes())
    hidden_note = ["hidden (scale 0) in gaps"] if track.gaps else []
    note = next(note for note in notes if note.startswith(f"person {track.person}: "))
    return [f"{rate:.6g} frames per second, resampled by Blender; {note.partition(': ')[2]}", *hidden_note]


FORMAT = PersonFormat(
    ".fbx", write, uniform=False, extra="fbx", check=check, options=("rig", "foot_lock", "character", "bones")
)
