"""Export of a result to a folder that may contain files of earlier calls and of the user."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import UsageError
from pose.export import check_formats, export_all, open_recording, targets
from pose.export.text import LIST
from pose.system.written_files import WrittenFiles
from pose_apps.support.outputs import STEM, Outputs, is_export

if TYPE_CHECKING:
    from pose.export import Recording, Written


def check_exports(names: list[str], folder: Path, *, overwrite: bool) -> None:
    """Check that exports of these formats are possible.

    Raises:
        UsageError: If files of such formats exist.
        PoseError: If a library is not installed.
    """
    check_formats(names, "--formats")
    there = sorted(path for path in folder.iterdir() if is_export(path.name, names)) if folder.is_dir() else []
    if there and not overwrite:
        raise UsageError(f"{there[0]} exists; give --overwrite to replace what is there, or another folder with --out")


def check_targets(recording: "Recording", names: list[str], people: list[int], folder: Path, stem: str) -> None:
    """Check that no file of `export_all` exists.

    Raises:
        UsageError: If one does.
    """
    for path in targets(recording, names, people, folder, stem):
        if os.path.lexists(path):
            raise UsageError(f"{path} exists; give --overwrite to replace it, or another folder with --out")


def write_exports(
    outputs: Outputs, folder: Path, video: str, space: str | None = None, trim: bool = True
) -> tuple[list[Path], list[str], list[str]]:
    """Write every format from the folder's poses.npz; earlier files are replaced.

    Args:
        outputs: The formats.
        folder: Folder of the results.
        video: Source video.
        space: See `pose.export.Recording`.
        trim: See `pose.export.Recording`.

    Returns:
        The files, the notes on each, and the problems of formats that could not be written.
    """
    source, names = Path(video), list(outputs.exports)
    pictures = source if source.is_file() else None
    recording = open_recording(folder / f"{STEM}.npz", video=pictures, space=space, trim=trim)
    made: list[Written] = []
    problems = export_all(recording, names, recording.people, folder, STEM, made.append, outputs.warn)
    files = [written.path for written in made]
    record = WrittenFiles(folder)
    new = {name for path in files for name in (path.name, f"{path.name}{LIST}")}
    for name in record.names:  # files of people who are not in this run
        if is_export(name, names) and name not in new:
            record.remove(folder / name)
    record.save()
    nobody = [] if recording.people else [f"{', '.join(names)}: the result contains no person; no file was written"]
    return files, [f"space: {recording.space.note}", *map(str, made), *nobody], problems
