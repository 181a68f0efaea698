"""Lifecycle of a result file, which is written under a temporary name and renamed when complete."""

from contextlib import AbstractContextManager, suppress
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

from pose.errors import PoseError
from pose.structures.types import FrameResult
from pose.utils.whole_file import WholeFile, file_errors


class ResultWriter(AbstractContextManager["ResultWriter"], Protocol):
    """Interface of writers that write the results of a run frame by frame, in constant memory."""

    def write(self, result: FrameResult) -> None:
        """Append the result of a frame to the file."""
        ...

    def finish(self, complete: bool = True) -> None:
        """Complete the file under its temporary name; `complete=False` marks the run as interrupted."""
        ...

    def commit(self) -> None:
        """Give the finished file its final name."""
        ...

    def close(self, complete: bool = True) -> None:
        """Call `finish` and `commit`, with no effect after them; `complete=False` marks the run as interrupted."""
        ...

    def abort(self) -> None:
        """Delete the temporary file. This has no effect after `commit` or an earlier `abort`."""
        ...


class PartFile:
    """A file written unbuffered under a hidden name; `commit` renames it to `target`, `discard` deletes it."""

    def __init__(self, target: Path, part: Path | None = None) -> None:
        self.target = target
        self._part = part or WholeFile(target).path
        with file_errors(target):
            self._file: FileIO = self._part.open("wb", buffering=0)

    @property
    def closed(self) -> bool:
        """Whether the file was committed or discarded."""
        return self._file.closed

    def write_and_truncate(self, offset: int, data: bytes) -> None:
        """Write `data` at the byte `offset`, and end the file after them."""
        with file_errors(self.target):
            write_all(self._file, offset, data)
            self._file.truncate(offset + len(data))

    def overwrite(self, offset: int, data: bytes) -> None:
        """Overwrite bytes with `data`, from the byte `offset` on. The rest of the file is kept."""
        with file_errors(self.target):
            write_all(self._file, offset, data)

    def commit(self) -> None:
        """Close the file, and rename it to `target`."""
        with file_errors(self.target):
            self._file.close()
            self._part.replace(self.target)

    def discard(self) -> None:
        """Close the file, and delete it under its temporary name."""
        close_scratch(self._file)
        self._part.unlink(missing_ok=True)


def write_all(file: FileIO, offset: int, data: bytes) -> None:
    """Write `data` at byte `offset` of an unbuffered file."""
    file.seek(offset)
    rest = memoryview(data)
    while len(rest):
        rest = rest[file.write(rest) or 0 :]


def close_scratch(file: IO[bytes]) -> None:
    """Close a file whose content is no longer needed, and ignore errors of the final flush."""
    with suppress(OSError):
        file.close()


class WriterContext:
    """Base of writers whose context closes the file: kept and marked as incomplete after an exception."""

    # After an error of the file itself, such as a full disk, no file is left.

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

    def finish(self, complete: bool = True) -> None:
        """Complete the file under its temporary name; `complete=False` marks the run as interrupted."""
        raise NotImplementedError

    def commit(self) -> None:
        """Give the finished file its final name."""
        raise NotImplementedError

    def close(self, complete: bool = True) -> None:
        """Complete the file, and give it its final name; `complete=False` marks the run as interrupted."""
        self.finish(complete)
        self.commit()

    def abort(self) -> None:
        """Delete the temporary file. This has no effect after `commit` or an earlier `abort`."""
        raise NotImplementedError
