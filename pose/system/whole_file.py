"""Files that appear under their name only when they are whole: written beside it under a hidden name, then renamed."""

import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pose.errors import PoseError

_SHOWN = 50  # characters of the name that the hidden one repeats; a name may have 255 bytes
_PART = re.compile(r"\.(.+)\.[0-9a-f]{8}\.part", re.DOTALL)


@contextmanager
def file_errors(path: Path | str) -> Iterator[None]:
    """Turn what the operating system says while `path` is read or written into one line for the user."""
    try:
        yield
    except OSError as error:
        raise PoseError(f"{path}: {error.strerror or error}") from error


class WholeFile:
    """A file in the making. path: its hidden name, beside `target`. `commit` or `discard` it in the end."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f".{target.name[:_SHOWN]}.{uuid.uuid4().hex[:8]}.part")

    @staticmethod
    def remove_leftovers(folder: Path, is_target: Callable[[str], bool]) -> None:
        """Remove what processes that were killed left of files in `folder` whose names `is_target` says are ours.

        Only for who knows that nobody is writing one now.
        """
        for path in folder.iterdir():
            found = _PART.fullmatch(path.name)
            if found is None or not is_target(found[1]):
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def commit(self) -> None:
        """Give it its real name; what was there is replaced. Raises PoseError, and then nothing is left."""
        try:
            with file_errors(self.target):
                self.path.replace(self.target)
        finally:
            self.discard()

    def discard(self) -> None:
        """Leave nothing behind. After `commit` or a second time it does nothing."""
        self.path.unlink(missing_ok=True)


@contextmanager
def whole_file(target: Path) -> Iterator[Path]:
    """Gives the hidden path to write to; at the end of the block it becomes `target`, after any error nothing is left.

    Raises PoseError, naming `target`, for what the operating system says within the block (disk full, no such folder).
    """
    file = WholeFile(target)
    try:
        with file_errors(target):
            yield file.path
        file.commit()
    finally:
        file.discard()


def write_whole(target: Path, content: bytes | str) -> None:
    """Write all of a small file, text as UTF-8. Raises PoseError, and then nothing is left."""
    with whole_file(target) as hidden:
        hidden.write_bytes(content.encode() if isinstance(content, str) else content)
