"""Hidden folders for incomplete files, and removal of those that killed processes left.

A folder in use is locked (`flock` of the folder itself, released with the process). Where folders cannot be locked, on
Windows and some network disks, folders older than a day are removed.
"""

import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from pose.system.whole_file import file_errors

PREFIX = ".new-"
NAME = re.compile(r"\.new-[0-9a-f]{8}")
MARK = ".pose-run-work"  # file that contains the folder's name; folders without it are never removed
DAY = 86_400.0


@contextmanager
def work_folder(parent: Path) -> Iterator[Path]:
    """Context of a hidden folder in the existing folder `parent`; it is deleted with its content at the end.

    Folders of killed processes in `parent` are removed first. Raises PoseError if it cannot be made.
    """
    remove_leftovers(parent)
    with ExitStack() as place:
        with file_errors(parent):
            folder = place.enter_context(own_folder(lambda: _new_folder(parent)))
        yield folder


@contextmanager
def own_folder(make: Callable[[], Path]) -> Iterator[Path]:
    """Context of a locked folder, which clean-up spares; it is deleted with its content at the end.

    make: makes the folder; called again if another process removes it before it is locked. Its exceptions are raised.
    """
    folder, lock = _made(make)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _unlock(lock)


@contextmanager
def alone_in(folder: Path) -> Iterator[bool | None]:
    """Context that marks the folder as in use, and yields whether no other process uses it; None without locks.

    It also yields False if the folder is gone, because another process has just removed it.
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
    """Remove the unused work folders in `parent`; only those that `work_folder` made."""
    for folder in parent.glob(f"{PREFIX}*"):
        if folder.is_symlink() or not folder.is_dir() or not _is_ours(folder):
            continue
        with suppress(OSError):  # in use, already removed, or without permission
            lock = _lock(folder)
            try:
                if lock is not None or folder.stat().st_mtime < time.time() - DAY:
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                _unlock(lock)


def _new_folder(parent: Path) -> Path:
    folder = parent / f"{PREFIX}{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    with suppress(FileNotFoundError):  # another process may clean up here, which `_made` detects
        (folder / MARK).write_text(folder.name, encoding="ascii")
    return folder


def _is_ours(folder: Path) -> bool:
    """Whether `work_folder` made it: it contains its own name, or nothing if its process was killed before that.

    Copied or renamed folders do not count.
    """
    mark = folder / MARK
    try:
        if NAME.fullmatch(folder.name) is None:
            return False
        if all(path.name == MARK for path in folder.iterdir()):
            return True
        state = mark.lstat()
        return stat.S_ISREG(state.st_mode) and state.st_size < 64 and mark.read_bytes() == folder.name.encode()
    except OSError:
        return False


def _made(make: Callable[[], Path]) -> tuple[Path, int | None]:
    while True:
        folder = make()
        try:
            lock = _lock(folder)
        except (FileNotFoundError, BlockingIOError):  # another process cleaned up between the two steps
            continue
        if folder.is_dir():
            return folder, lock
        _unlock(lock)


def _lock(folder: Path) -> int | None:
    """Lock the folder; return the descriptor, or None if folders cannot be locked.

    Raises BlockingIOError if another process has locked it.
    """
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
