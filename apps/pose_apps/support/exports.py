"""Export of a result to a folder that may already contain files of earlier exports and of the user."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pose.body.selection import some_ids
from pose.errors import UsageError
from pose.export import FORMATS, check_formats, export_all, open_recording, targets
from pose.export.format import PersonFormat
from pose.export.text import LIST
from pose.structures.defaults import STEM
from pose.utils.written_files import WrittenFiles
from pose_apps.support.outputs import Outputs, is_export

if TYPE_CHECKING:
    from pose.export import Recording, Written


def check_exports(names: list[str], folder: Path, *, overwrite: bool) -> None:
    """Check that a result can be exported to the given formats.

    Args:
        names: Names of the formats.
        folder: Folder of the exports.
        overwrite: Whether existing files may be replaced.

    Raises:
        UsageError: If files in one of the formats exist already, and `overwrite` is False.
        PoseError: If a library is not installed.
    """
    check_formats(names, "--formats")
    there = sorted(path for path in folder.iterdir() if is_export(path.name, names)) if folder.is_dir() else []
    if there and not overwrite:
        raise UsageError(f"{there[0]} exists; give --overwrite to replace what is there, or another folder with --out")


def check_targets(recording: "Recording", names: list[str], people: list[int], folder: Path, stem: str) -> None:
    """Check that no file exists that an export would write.

    Args:
        recording: Result to export.
        names: Names of the formats.
        people: Ids of the people to export.
        folder: Folder of the exports.
        stem: Start of the file names.

    Raises:
        UsageError: If such a file exists.
    """
    for path in targets(recording, names, people, folder, stem):
        if os.path.lexists(path):
            raise UsageError(f"{path} exists; give --overwrite to replace it, or another folder with --out")


def write_exports(
    outputs: Outputs, folder: Path, video: str, space: str | None = None, trim: bool = True
) -> tuple[list[Path], list[str], list[str]]:
    """Export the poses.npz in a folder to all requested formats. Files of earlier exports are replaced.

    Args:
        outputs: Outputs with the export formats.
        folder: Folder of the results.
        video: Path of the source video.
        space: Coordinate frame of the exports, "camera" or "world"; None for world if the result has it, else camera.
        trim: Whether to omit a person's first and last frames in which the person is only partly in the image or has
            feet below the floor.

    Returns:
        The files, notes on the files, and problems of formats that could not be written.
    """
    source, names = Path(video), list(outputs.exports)
    pictures = source if source.is_file() else None
    recording = open_recording(folder / f"{STEM}.npz", video=pictures, space=space, trim=trim)
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
    return files, [f"space: {recording.space.note}", *map(str, made), *missing], problems


def unwritten(names: list[str], people: list[int], files: list[Path], stem: str) -> list[str]:
    """Return a line for the summary about people without an exported file, as a list with one or no line.

    Only formats with one file per person are considered.

    Args:
        names: Names of the formats that were written.
        people: Ids of the people that were exported.
        files: Written files.
        stem: Start of the file names.
    """
    single = [name for name in names if isinstance(FORMATS[name], PersonFormat)]
    if not single:
        return []
    if not people:
        return [f"{', '.join(single)}: the result contains no person; no file was written"]
    found, ending = {path.name for path in files}, FORMATS[single[0]].ending
    left = [person for person in people if f"{stem}-person{person}{ending}" not in found]
    return [f"{', '.join(single)}: no file for person {some_ids(left)}, who has no valid pose"] if left else []
