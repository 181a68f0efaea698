"""Hidden folders for files in the making: whoever is killed leaves one behind, and the next one removes it.

A folder that somebody works in is locked (`flock` of the folder itself, which ends with the process, however it ends).
Where folders cannot be locked, on Windows and on some network disks, what is older than a day counts as left behind.
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
MARK = ".pose-run-work"  # file in a work folder, which holds the folder's name: without it a folder is not ours
DAY = 86_400.0


@contextmanager
def work_folder(parent: Path) -> Iterator[Path]:
    """A hidden folder in `parent`, which must be there; with everything left in it, it is gone at the end.

    What others left in `parent` who were killed is removed first. Raises PoseError where it cannot be made.
    """
    remove_leftovers(parent)
    with ExitStack() as place:
        with file_errors(parent):
            folder = place.enter_context(own_folder(lambda: _new_folder(parent)))
        yield folder


@contextmanager
def own_folder(make: Callable[[], Path]) -> Iterator[Path]:
    """A folder that `make` makes, locked: who cleans up leaves it alone. With everything in it, it is gone at the end.

    make: is called again where somebody who cleans up comes before the lock. What it raises is raised.
    """
    folder, lock = _made(make)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _unlock(lock)


@contextmanager
def alone_in(folder: Path) -> Iterator[bool | None]:
    """Whether no other process says that it is in this folder; says so itself. None where folders cannot be locked.

    Not alone is also who finds the folder gone: somebody else has just removed it.
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
    """Remove the work folders in `parent` that no process works in any more; only those that `work_folder` made."""
    for folder in parent.glob(f"{PREFIX}*"):
        if folder.is_symlink() or not folder.is_dir() or not _is_ours(folder):
            continue
        with suppress(OSError):  # somebody works in it, was quicker, or it is not ours to remove
            lock = _lock(folder)
            try:
                if lock is not None or folder.stat().st_mtime < time.time() - DAY:
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                _unlock(lock)


def _new_folder(parent: Path) -> Path:
    folder = parent / f"{PREFIX}{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    with suppress(FileNotFoundError):  # somebody who cleans up came between; `_made` sees it
        (folder / MARK).write_text(folder.name, encoding="ascii")
    return folder


def _is_ours(folder: Path) -> bool:
    """Whether `work_folder` made it: it holds its own name, or nothing, where its maker was killed before the mark.

    Folders that were copied or renamed do not count.
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
        except (FileNotFoundError, BlockingIOError):  # somebody who cleans up came between the two steps
            continue
        if folder.is_dir():
            return folder, lock
        _unlock(lock)


def _lock(folder: Path) -> int | None:
    """The descriptor that holds the folder's lock; None where folders cannot be locked.

    Raises BlockingIOError where another process holds it.
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
