"""Atomic file writes: files are written under a hidden name beside the target and renamed when complete."""

import re
import stat
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from pose.errors import PoseError, UsageError
from pose.utils.shown import shown

SPECIAL = "is a device, a pipe or a socket, which is never replaced; choose another file"
_MAX_NAME_CHARS = 50  # characters of the target's name in the hidden name, which may have at most 255 bytes
_PART = re.compile(r"\.(.+)\.[0-9a-f]{8}\.part", re.DOTALL)


def checked_path(path: object, name: str) -> Path:
    """Return an argument of the Python API as a path; UsageError if it is none."""
    if not isinstance(path, str | Path) or "\0" in str(path):
        raise UsageError(f"{name}: expected a path, got {shown(repr(path), 60)}")
    return Path(path)


@contextmanager
def file_errors(path: Path | str) -> Iterator[None]:
    """Return a context manager that converts OSErrors to PoseErrors, whose messages of one line name `path`."""
    try:
        yield
    except OSError as error:
        raise PoseError(f"{path}: {error.strerror or error}") from error


def make_folder(folder: Path) -> None:
    """Create a folder and those above it; `Path.mkdir` fails in Python for a thousand nested ones."""
    for path in (*reversed(folder.parents), folder):
        if not path.is_dir():
            path.mkdir(exist_ok=True)


class WholeFile:
    """A file that is written under a temporary name. Call `commit` or `discard` at the end."""

    def __init__(self, target: Path) -> None:
        """Choose the temporary path; PoseError if the target is a device, a pipe or a socket."""
        if is_special(target):
            raise PoseError(f"{target}: {SPECIAL}")
        self.target = target  # final path
        # Hidden temporary path in the folder of `target`.
        self.path = target.with_name(f".{target.name[:_MAX_NAME_CHARS]}.{uuid.uuid4().hex[:8]}.part")

    @staticmethod
    def remove_leftovers(folder: Path, is_target: Callable[[str], bool]) -> None:
        """Remove a folder's temporary files, of targets that no process writes, that killed processes left."""
        for path in folder.iterdir():
            found = _PART.fullmatch(path.name)
            if found is not None and is_target(found[1]) and stat.S_ISREG(path.lstat().st_mode):
                path.unlink(missing_ok=True)

    def commit(self) -> None:
        """Rename the file to its final name, or delete it and raise a PoseError; an existing one is replaced."""
        try:
            with file_errors(self.target):
                self.path.replace(self.target)
        finally:
            self.discard()

    def discard(self) -> None:
        """Delete the temporary file. This has no effect after `commit` or an earlier `discard`."""
        self.path.unlink(missing_ok=True)


def is_special(path: Path) -> bool:
    """Return whether a path exists and is none of a file, a folder or a link."""
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def target_of_part(name: str, targets: Collection[str]) -> str | None:
    """Return the target of a hidden temporary file, whose name has its first 50 characters, or None."""
    found = _PART.fullmatch(name)
    if found is None or len(found[1]) < _MAX_NAME_CHARS:
        return None if found is None else found[1]
    return next((target for target in targets if target.startswith(found[1])), found[1])


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Return a context manager that yields a temporary path, which is renamed to `target` at the end of the block.

    If an exception leaves the block, the temporary file is deleted.

    Raises:
        PoseError: If an OSError occurs in the block, such as a full disk. The message names `target`.
    """
    file = WholeFile(target)
    try:
        with file_errors(target):
            yield file.path
        file.commit()
    except PoseError as error:
        if file.path.name not in str(error):
            raise
        raise type(error)(str(error).replace(file.path.name, target.name)) from error
    finally:
        file.discard()


def write_whole(target: Path, content: bytes | str) -> None:
    """Write a small file, text in UTF-8, as a whole or not at all; PoseError if it cannot be written."""
    with whole_file(target) as hidden:
        hidden.write_bytes(content.encode() if isinstance(content, str) else content)
