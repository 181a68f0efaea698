"""Hidden folders for incomplete files, and removal of those that killed processes left.

Each work folder contains a marker file with the folder's name and the names of the files that may be written into it.
Only the named files are deleted. If the folder contains other files, they and the folder are kept.

A folder in use is locked with `flock` on the folder itself; the lock ends with the process. Windows and some network
file systems cannot lock folders. There, folders older than a day are removed.
"""

import os
import re
import stat
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from pose.utils.whole_file import file_errors, target_of_part

PREFIX = ".new-"
NAME_PATTERN = re.compile(r"\.new-[0-9a-f]{8}")
MARKER_NAME = ".pose-run-work"  # marker file; folders with other files but without it are never removed
MAX_MARKER_BYTES = 64 << 20  # maximum size of a marker file
_GLOB = re.compile(r"[*?[]")
MAX_LEFTOVER_AGE_S = 86_400.0


@contextmanager
def work_folder(parent: Path, names: Collection[str]) -> Iterator[Path]:
    """Return a context manager that creates a hidden folder in `parent`, yields its path, and deletes it at the end.

    Folders that killed processes left in `parent` are removed first. `names` are names or globs of the files that will
    be written (`folder/name` in subfolders); other files are kept, and the folder with them. PoseError if it cannot be
    made.
    """
    remove_leftovers(parent)
    with file_errors(parent):
        folder, lock = _create(parent, names)
    try:
        yield folder
    finally:
        _remove(folder, names)
        _unlock(lock)


@contextmanager
def folder_lock(folder: Path) -> Iterator[bool | None]:
    """Return a context manager that marks a folder as in use by this process.

    It yields True if no other process uses the folder, and None if folders cannot be locked. It yields False if another
    process uses the folder or has just removed it.
    """
    lock, alone = None, None
    try:
        lock = _lock(folder)
        alone = None if lock is None else True
    except (BlockingIOError, FileNotFoundError):
        alone = False
    try:
        yield alone
    finally:
        _unlock(lock)


def remove_leftovers(parent: Path) -> None:
    """Remove the work folders in `parent` that no process uses. Folders that `work_folder` did not create are kept."""
    for folder in parent.glob(f"{PREFIX}*"):
        if folder.is_symlink() or not folder.is_dir():
            continue
        names = _read_marker(folder)
        if names is None:
            continue
        with suppress(OSError):  # in use, removed by another process, or not removable
            lock = _lock(folder)
            try:
                if lock is not None or folder.stat().st_mtime < time.time() - MAX_LEFTOVER_AGE_S:
                    _remove(folder, names)
            finally:
                _unlock(lock)


def _remove(folder: Path, names: Collection[str]) -> None:
    """Delete the named files and the marker file, then every folder that is empty."""
    exact = {name for name in names if not _GLOB.search(name)} | {MARKER_NAME}
    globs = [name for name in names if _GLOB.search(name)]
    for directory, folders, files in os.walk(folder, topdown=False):
        inside = Path(directory).relative_to(folder)
        for file in files:
            relative = (inside / (target_of_part(file, exact) or file)).as_posix()
            if relative in exact or any(fnmatchcase(relative, name_or_glob) for name_or_glob in globs):
                with suppress(OSError):
                    os.unlink(os.path.join(directory, file))
        for name_or_glob in folders:
            with suppress(OSError):  # not empty, or a link
                os.rmdir(os.path.join(directory, name_or_glob))
    with suppress(OSError):
        folder.rmdir()


def _read_marker(folder: Path) -> list[str] | None:
    """Return the names of a work folder's files from its marker file; None for another folder."""
    # A folder that was copied or renamed is another one. An empty folder is accepted, because its process may have been
    # killed before it wrote the marker file.
    mark = folder / MARKER_NAME
    try:
        if NAME_PATTERN.fullmatch(folder.name) is None:
            return None
        if next(folder.iterdir(), None) is None:
            return []
        state = mark.lstat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > MAX_MARKER_BYTES:
            return None
        name, *names = mark.read_bytes().decode("utf-8", "surrogateescape").split("\0")
        return names if name == folder.name else None
    except OSError:
        return None


def _create(parent: Path, names: Collection[str]) -> tuple[Path, int | None]:
    while True:
        folder, lock = parent / f"{PREFIX}{uuid.uuid4().hex[:8]}", None
        folder.mkdir()
        try:
            lock = _lock(folder)
            (folder / MARKER_NAME).write_bytes("\0".join([folder.name, *names]).encode("utf-8", "surrogateescape"))
        except (FileNotFoundError, BlockingIOError):  # another process removed the folder between the steps
            _unlock(lock)
            continue
        except OSError:  # for example a full disk
            _remove(folder, names)
            _unlock(lock)
            raise
        return folder, lock


def _lock(folder: Path) -> int | None:
    """Lock a folder, and return its file descriptor, or None if folders cannot be locked."""
    if fcntl is None:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _unlock(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)
