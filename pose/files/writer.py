"""The life of a result file: written under a temporary name, renamed when it is whole."""

from contextlib import AbstractContextManager, suppress
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

from pose.errors import PoseError
from pose.system.whole_file import WholeFile, file_errors
from pose.types import FrameResult


class ResultWriter(AbstractContextManager["ResultWriter"], Protocol):
    """Takes the results of a run, frame after frame, in memory that does not grow with their number."""

    def write(self, result: FrameResult) -> None:
        """Add the next frame. Raises PoseError when the folder cannot take it (full, gone, not writable)."""
        ...

    def close(self, complete: bool = True) -> None:
        """Finish the file and give it its real name; `complete=False` says in it that the run was cut short."""
        ...

    def abort(self) -> None:
        """Leave nothing behind. After `close` or a second time it does nothing."""
        ...


class PartFile:
    """A file that gets its real name only when it is whole.

    It grows under another name, `part`, by default a hidden one beside `target`; `commit` renames it over `target`,
    `discard` removes it. Nothing waits in memory to be written.
    """

    def __init__(self, target: Path, part: Path | None = None) -> None:
        self.target = target
        self._part = part or WholeFile(target).path
        with file_errors(target):
            self._file: FileIO = self._part.open("wb", buffering=0)

    @property
    def closed(self) -> bool:
        return self._file.closed

    def write_end(self, place: int, data: bytes) -> None:
        """Make `data`, from byte `place` on, the end of the file. Raises PoseError when the disk cannot take it."""
        with file_errors(self.target):
            write_all(self._file, place, data)
            self._file.truncate(place + len(data))

    def write_within(self, place: int, data: bytes) -> None:
        """Put `data` in place of what is there from byte `place` on. Raises PoseError."""
        with file_errors(self.target):
            write_all(self._file, place, data)

    def commit(self) -> None:
        with file_errors(self.target):
            self._file.close()
            self._part.replace(self.target)

    def discard(self) -> None:
        close_scratch(self._file)
        self._part.unlink(missing_ok=True)


def write_all(file: FileIO, place: int, data: bytes) -> None:
    """Write `data` at byte `place` of a file without a buffer. Raises OSError when it could not all be written."""
    file.seek(place)
    rest = memoryview(data)
    while len(rest):
        rest = rest[file.write(rest) or 0 :]


def close_scratch(file: IO[bytes]) -> None:
    """Close a file that nobody wants any more; closing flushes, and a full disk is no news then."""
    with suppress(OSError):
        file.close()


class WriterContext:
    """`with writer:` closes at the end; what was finished before an exception is kept, marked as incomplete.

    An error of the file itself (disk full) leaves nothing.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close(complete=kind is None)
        except PoseError:
            self.abort()
            if kind is None:
                raise

    def close(self, complete: bool = True) -> None:
        raise NotImplementedError

    def abort(self) -> None:
        raise NotImplementedError
