"""Output files of `pose-run`, which are checked before any work."""

import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pose.errors import PoseError, UsageError
from pose.structures.defaults import RESULT_JSON, RESULT_NPZ, STEM
from pose.utils.shown import shown
from pose.utils.whole_file import WholeFile, make_folder
from pose.utils.work_folder import folder_lock, work_folder
from pose.utils.written_files import RECORD, WrittenFiles, print_warning

if TYPE_CHECKING:
    pass

DEFAULT_FORMATS = ("json", "npz", "overlay")  # default formats of a run
UNFINISHED = "unfinished"  # folder for the output of an interrupted run beside an older result
GALLERY_PATTERN = r"gallery-\d+\.jpg"  # files of single images
ANALYSIS_PATTERN = r"analysis(-\w+)?\.(csv|json|parquet|html|c3d)"  # files of --analyse
GLOB_CHARACTERS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Outputs:
    """Output files of one run, in one folder."""

    folder: Path  # folder of the files
    files: dict[str, Path]  # path of each file by format, such as "npz" or "overlay", without exports
    exports: tuple[str, ...] = ()  # names of the formats of `pose.export` to which the results are exported
    # Function called with a message for each file of the user that was renamed.
    warn: Callable[[str], None] = print_warning

    @property
    def overlay(self) -> Path | None:
        """Path of the overlay video; None without an overlay."""
        return self.files.get("overlay")

    def check_free(self) -> None:
        """Check that the folder contains no results, which are never mixed with others; else UsageError."""
        for path in self._existing():
            raise UsageError(f"{path} exists; give --overwrite to replace what is there, or another folder with --out")

    @contextmanager
    def ready_folder(self, others: Collection[str] = ()) -> Iterator["Outputs"]:
        """Create the folder, and yield outputs in a hidden one inside it; errors if it is in use or not writable."""
        names = {*known_files().values(), *others}
        with made_folder(self.folder), folder_lock(self.folder) as alone, work_folder(self.folder, names) as hidden:
            if alone is False:
                raise UsageError(
                    f"{self.folder}: another run is writing to it; wait until it ends, or choose another with --out"
                )
            if alone:
                WholeFile.remove_leftovers(self.folder, is_result)
            written = self._in_subfolder(hidden.name)
            try:
                yield written
            except PoseError as error:
                if str(hidden) not in str(error):
                    raise
                raise PoseError(str(error).replace(str(hidden), str(self.folder))) from error
            finally:
                self.settle(written, complete=False)

    def settle(self, written: "Outputs", *, complete: bool) -> "Outputs":
        """Move the written files to their final places; incomplete ones do not replace an older result."""
        new = sorted(path for path in written.folder.iterdir() if not path.name.startswith("."))
        old = self._existing()
        keeps = complete or not old or not self._holds_complete_result()
        target = self if keeps else self._in_subfolder(UNFINISHED)
        if not new:
            return target
        if target is not self and not (target.folder.is_dir() and not target.folder.is_symlink()):
            WrittenFiles(self.folder, self.warn).move_user_file(target.folder)
        target.folder.mkdir(exist_ok=True)
        record = WrittenFiles(target.folder, self.warn)
        for path in new:
            record.move_user_file(target.folder / path.name)
            record.expect(path, path.name)
        record.save_expected()  # so that files of a run that is killed now are recorded
        names = {path.name for path in new}
        for name in record.names:  # first, so that files of two runs are never together
            if self._is_stale(name, names):
                record.remove(target.folder / name)
        for path in new:
            path.replace(target.folder / path.name)
            record.confirm(path.name)
        record.save()
        return target

    def _holds_complete_result(self) -> bool:
        """Return whether the folder has a result of a whole video, or one that does not tell."""
        for path in (self.folder / RESULT_JSON, self.folder / RESULT_NPZ):
            with suppress(OSError, PoseError, KeyError, ValueError):
                if path.suffix == ".json":
                    with path.open("rb") as file:
                        file.seek(max(0, path.stat().st_size - 100))
                        return b'"complete": false' not in file.read()
                from pose.utils.archives import open_arrays

                with open_arrays(path) as arrays:
                    return bool(arrays["complete"])
        return True

    def discard(self) -> None:
        """Delete the files in the hidden folder of `ready_folder`."""
        for name in known_files().values():
            (self.folder / name).unlink(missing_ok=True)

    def _is_stale(self, name: str, new: set[str]) -> bool:
        """Return whether a file of an earlier run does not belong to the new results, whose file names are `new`."""
        if name in new:
            return False
        return is_result(name) or re.fullmatch(f"{GALLERY_PATTERN}|{ANALYSIS_PATTERN}", name) is not None

    def _in_subfolder(self, folder: str) -> "Outputs":
        files = {name: self.folder / folder / path.name for name, path in self.files.items()}
        return replace(self, folder=self.folder / folder, files=files, exports=())

    def _existing(self) -> list[Path]:
        """Return the existing files in the folder that a run could have written."""
        return [path for file in known_files().values() if os.path.lexists(path := self.folder / file)]


def known_files() -> dict[str, str]:
    """Return the file name of each format that `pose-run` writes without an exporter."""
    from pose.results import WRITERS

    return {name: f"{STEM}.{name}" for name in WRITERS} | {"overlay": "overlay.mp4"}


def is_export(name: str, formats: list[str]) -> bool:
    """Return whether an export to formats may write a file with a given name."""
    from pose.export import FORMATS
    from pose.export.format import LIST

    endings = "|".join(re.escape(FORMATS[one].ending) for one in formats)
    return re.fullmatch(rf"{STEM}(-person-?\d+)?({endings})({re.escape(LIST)})?", name) is not None


def is_result(name: str) -> bool:
    """Return whether `pose-run` may write a file with this name, in any format."""
    from pose.export import FORMATS

    return name in known_files().values() or is_export(name, list(FORMATS)) or name == RECORD


def plan_outputs(video: str, out: str | None, formats: str, overlay: bool, *, npz: bool = False) -> Outputs:
    """Return the output files of a run; `npz` adds poses.npz to the formats."""
    wanted = [name.strip() for name in formats.split(",") if name.strip()]
    files = known_files()
    exports = [name for name in wanted if name not in files]
    if exports:
        from pose.export import FORMATS as EXPORTS

        for name in exports:
            if name not in EXPORTS:
                raise UsageError(f"--formats: {shown(name, 60)!r} is unknown; known: {', '.join([*files, *EXPORTS])}")
        wanted = [name for name in files if name in wanted or name == "npz"]  # exports are made from the npz
    if npz and "npz" not in wanted:
        wanted.append("npz")
    if not overlay:
        wanted = [name for name in wanted if name != "overlay"]
    if not wanted:
        raise UsageError(f"--formats: no format given; known: {', '.join(files)}")
    folder = default_folder(video) if out is None else Path(out)
    return Outputs(folder, {name: folder / files[name] for name in wanted}, tuple(dict.fromkeys(exports)))


def default_folder(video: str) -> Path:
    """Return the folder named after and beside the video, or in the working directory for other inputs."""
    path = Path(video)
    if path.is_dir():
        path = path.resolve()
        return path.with_name(f"{path.name}-poses")
    if "://" in video and not path.exists():
        parts = urlsplit(video)
        return Path(f"{Path(parts.path).stem or parts.hostname or 'stream'}-poses")
    if video.isdigit() and not path.exists():
        return Path(f"camera{video}-poses")
    if not path.exists() and GLOB_CHARACTERS & set(video):
        fixed = next(folder for folder in path.parents if not GLOB_CHARACTERS & set(str(folder))).resolve()
        return fixed.with_name(f"{fixed.name}-poses")
    return path.with_suffix("") if path.suffix else path.with_name(f"{path.name}-poses")


def create_folder(folder: Path) -> None:
    """Create the folder of `--out` and those above it; PoseError if that fails."""
    try:
        make_folder(folder)
    except (FileExistsError, NotADirectoryError) as error:
        raise PoseError(f"{folder}: is not a folder; choose another with --out") from error
    except OSError as error:
        raise PoseError(f"{folder}: cannot be created ({error.strerror}); choose another with --out") from error


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Create a folder, and remove it at the end of the context if it is empty."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    create_folder(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PoseError(f"{folder}: is not writable; choose another with --out")
    try:
        yield
    finally:
        with suppress(OSError):  # not empty
            for path in made:
                path.rmdir()
