"""Other programs' formats of a result, in a folder that may hold files of earlier calls and of the user."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import PoseError, UsageError
from pose.export import check_formats, export, open_recording, targets
from pose.system.written_files import WrittenFiles, say_warning
from pose_apps.support.outputs import FILLED, STEM, Outputs, is_export

if TYPE_CHECKING:
    from pose.export import Recording, Written

# Up to so many files, the record is saved after each; beyond, ever more rarely, because each time writes all names.
# A file not recorded yet when a process is killed counts as a file of the user: it is renamed, not replaced.
SAVED_EACH = 200


def check_exports(names: list[str], folder: Path, *, overwrite: bool) -> None:
    """Raises UsageError where files of such formats are there already, PoseError where a library is missing."""
    check_formats(names, "--formats")
    there = sorted(path for path in folder.iterdir() if is_export(path.name, names)) if folder.is_dir() else []
    if there and not overwrite:
        raise UsageError(f"{there[0]} exists; give --overwrite to replace what is there, or another folder with --out")


def check_targets(recording: "Recording", names: list[str], people: list[int], folder: Path, stem: str) -> None:
    """Raises UsageError where a file that `export_all` would write is there already."""
    for path in targets(recording, names, people, folder, stem):
        if os.path.lexists(path):
            raise UsageError(f"{path} exists; give --overwrite to replace it, or another folder with --out")


def write_exports(
    outputs: Outputs, folder: Path, video: str, space: str | None = None, trim: bool = True
) -> tuple[list[Path], list[str], list[str]]:
    """Write every format from the folder's poses.npz, in place of earlier ones.

    space, trim: as of `pose.export.Recording`.

    Returns the files, the lines that say what to know of each, and the problems of formats that could not be written.
    """
    source, names = Path(video), list(outputs.exports)
    pictures = source if source.is_file() else None
    recording = open_recording(folder / f"{STEM}.npz", video=pictures, space=space, trim=trim)
    made: list[Written] = []
    problems = export_all(recording, names, recording.people, folder, STEM, made.append, outputs.warn)
    files = [written.path for written in made]
    record = WrittenFiles(folder)
    new = {name for path in files for name in (path.name, f"{path.name}{FILLED}")}
    for name in record.names:  # of people whom this run does not have
        if is_export(name, names) and name not in new:
            record.remove(folder / name)
    record.save()
    nobody = [] if recording.people else [f"{', '.join(names)}: the result contains no person; no file was written"]
    return files, [f"space: {recording.space.note}", *map(str, made), *nobody], problems


def export_all(
    recording: "Recording",
    names: list[str],
    people: list[int],
    folder: Path,
    stem: str,
    done: "Callable[[Written], None]",
    warn: Callable[[str], None] = say_warning,
) -> list[str]:
    """Write every format for `people`. done: called with each file that is whole. warn: as of `WrittenFiles`.

    A file of the user that is in the way is renamed (`WrittenFiles`). A format that cannot be written does not keep the
    others from being written: returns what each such format had to say, one line each.
    """
    record, problems, unsaved, saved = WrittenFiles(folder, warn), [], 0, 0
    for name in names:
        for target in targets(recording, [name], people, folder, stem):
            record.make_way(target)
            record.make_way(target.with_name(f"{target.name}{FILLED}"))
            record.remove(target.with_name(f"{target.name}{FILLED}"))
        try:
            for written in export(recording, [name], folder, stem, people):
                for path in (written.path, written.path.with_name(f"{written.path.name}{FILLED}")):
                    if os.path.lexists(path):
                        record.add(path)
                unsaved += 1
                if unsaved > saved - SAVED_EACH:
                    record.save()
                    unsaved, saved = 0, saved + unsaved
                done(written)
        except PoseError as error:
            problems.append(f"{name}: {error}")
        finally:
            if unsaved:
                record.save()
    return problems
