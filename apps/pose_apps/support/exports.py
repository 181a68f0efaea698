"""Export of a result to a folder that may already contain files of earlier exports and of the user."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pose.body.selection import some_ids
from pose.errors import UsageError
from pose.export import FORMATS, check_formats, export_all, open_selection, targets
from pose.export.format import LIST, PersonFormat
from pose.structures.defaults import STEM
from pose.utils.written_files import WrittenFiles
from pose_apps.support.outputs import Outputs, is_export

if TYPE_CHECKING:
    from pose.export import Selection, Written


def check_exports(names: list[str], folder: Path, *, overwrite: bool) -> None:
    """Check that a result can be exported to the given formats."""
    check_formats(names, "--formats")
    there = sorted(path for path in folder.iterdir() if is_export(path.name, names)) if folder.is_dir() else []
    if there and not overwrite:
        raise UsageError(f"{there[0]} exists; give --overwrite to replace what is there, or another folder with --out")


def check_targets(recording: "Selection", names: list[str], people: list[int], folder: Path, stem: str) -> None:
    """Check that no file exists that an export would write."""
    for path in targets(recording, names, people, folder, stem):
        if os.path.lexists(path):
            raise UsageError(f"{path} exists; give --overwrite to replace it, or another folder with --out")


def write_exports(
    outputs: Outputs, folder: Path, video: str, space: str | None = None, trim: bool = True
) -> tuple[list[Path], list[str], list[str], list[str]]:
    """Export a folder's poses.npz, replacing earlier exports; return files, people left out, details and problems."""
    source, names = Path(video), list(outputs.exports)
    pictures = source if source.is_file() else None
    recording = open_selection(folder / f"{STEM}.npz", video=pictures, space=space, trim=trim)
    made: list[Written] = []
    problems = export_all(recording, names, recording.people, folder, STEM, made.append, outputs.warn)
    files = [written.path for written in made]
    record = WrittenFiles(folder)
    new = {name for path in files for name in (path.name, f"{path.name}{LIST}")}
    for name in record.names:  # remove files of an earlier export whose people are not in this result
        if is_export(name, names) and name not in new:
            record.remove(folder / name)
    record.save()
    missing = [] if problems else unwritten(names, recording.people, files, STEM)
    return files, missing, [f"space: {recording.space.note}", *map(str, made)], problems


def unwritten(names: list[str], people: list[int], files: list[Path], stem: str) -> list[str]:
    """Return at most one line about people without a file, in formats with one file per person."""
    single = [name for name in names if isinstance(FORMATS[name], PersonFormat)]
    if not single:
        return []
    if not people:
        return [f"{', '.join(single)}: the result contains no person; no file was written"]
    found, ending = {path.name for path in files}, FORMATS[single[0]].ending
    left = [person for person in people if f"{stem}-person{person}{ending}" not in found]
    return [f"{', '.join(single)}: no file for person {some_ids(left)}, who has no valid pose"] if left else []
