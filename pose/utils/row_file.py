"""Rows of structured NumPy arrays in a temporary file, for data that exceeds memory."""

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from pose.utils.whole_file import file_errors

Rows = NDArray[np.void]

_ROWS_PER_READ = 4096


class RowFile:
    """Store for rows of structured NumPy arrays under integer keys, in an unnamed temporary file.

    The rows of a key keep the order in which they were appended. Only the positions of blocks are kept in memory.

    Attributes:
        kind: Data type of the rows.
    """

    def __init__(self, kind: "np.dtype[Any]", folder: Path | None = None, memory: int = 0) -> None:
        """Create the temporary file.

        Args:
            kind: Data type of the rows.
            folder: Folder of the file; None for the system's temporary folder.
            memory: Number of bytes up to which the rows stay in memory, without a file.

        Raises:
            PoseError: If the file cannot be created.
        """
        self.kind = kind
        self._folder = folder or Path(tempfile.gettempdir())
        self._blocks: dict[int, list[tuple[int, int]]] = {}  # by key: byte position, number of rows
        self._end = 0
        self._file: IO[bytes]
        with file_errors(self._folder):  # open as long as the rows are needed
            if memory:
                self._file = tempfile.SpooledTemporaryFile(memory, dir=str(self._folder))  # noqa: SIM115
            else:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def keys(self) -> list[int]:
        """Keys in the order of their first `append`."""
        return list(self._blocks)

    def append(self, key: int, rows: Rows) -> None:
        """Append a block of rows under a key.

        Raises:
            PoseError: If the rows cannot be written, for example on a full disk.
        """
        assert rows.dtype == self.kind, (rows.dtype, self.kind)
        with file_errors(self._folder):
            self._file.seek(self._end)
            self._file.write(np.ascontiguousarray(rows).data)
        self._blocks.setdefault(key, []).append((self._end, len(rows)))
        self._end += rows.nbytes

    def count(self, key: int) -> int:
        """Return the number of rows of a key."""
        return sum(count for _, count in self._blocks.get(key, []))

    def read(self, key: int) -> Rows:
        """Return all rows of a key."""
        rows = np.zeros(self.count(key), self.kind)
        first = 0
        for block in self.portions(key, _ROWS_PER_READ):
            rows[first : first + len(block)] = block
            first += len(block)
        return rows

    def portions(self, key: int, max_rows: int) -> Iterator[Rows]:
        """Yield the rows of a key, at most `max_rows` at a time."""
        for position, count in self._blocks.get(key, []):
            for first in range(0, count, max_rows):
                part = min(max_rows, count - first)
                with file_errors(self._folder):
                    self._file.seek(position + first * self.kind.itemsize)
                    data = self._file.read(part * self.kind.itemsize)
                yield np.frombuffer(data, self.kind)

    def close(self) -> None:
        """Delete the temporary file."""
        with suppress(OSError):
            self._file.close()
