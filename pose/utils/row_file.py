"""A growing table of rows of a structured NumPy type, for data that may exceed memory."""

import tempfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from pose.utils.whole_file import file_errors

Rows = NDArray[np.void]

MEMORY_BYTES = 1 << 20  # of rows that stay in memory
_ROWS_PER_READ = 4096
_SPARSE = 4  # rows are read one by one if they are fewer than this fraction of their span


class RowFile:
    """Rows in the order in which they were appended, with an index of the rows of each key.

    Rows are in memory up to a limit, and then in an unnamed temporary file. Only their numbers are kept in memory.
    """

    def __init__(
        self,
        kind: "np.dtype[Any]",
        folder: Path | None = None,
        memory: int | None = None,
        existing: tuple[IO[bytes], int, int] | None = None,
    ) -> None:
        """Create an empty table of rows of the type `kind`, in a file in `folder` or the system's temporary folder.

        Up to `memory` bytes (default `MEMORY_BYTES`) stay in memory, without a file. `existing` is an open file with
        rows to read, the position of the first one, and their number; its owner closes it. PoseError if a file cannot
        be created.
        """
        self.kind = kind  # data type of the rows
        self._folder = folder or Path(tempfile.gettempdir())
        self._index: dict[int, array[int]] = {}  # row numbers by key
        self._count, self._limit, self._place = 0, MEMORY_BYTES if memory is None else memory, 0
        self._memory, self._file, self._begin, self._is_owner = bytearray(), None, 0, existing is None
        if existing is not None:
            self._file, self._begin, self._count = existing
            self._place = -1  # others move in the file, too
        elif not self._limit:
            self._file = self._new_file()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> list[int]:
        """Keys in the order of their first `append`."""
        return list(self._index)

    def append(self, keys: int | Sequence[int], rows: Rows) -> None:
        """Append rows under one key, or each under its own; PoseError if that fails, as on a full disk."""
        assert rows.dtype == self.kind, (rows.dtype, self.kind)
        if self._file is None and len(self._memory) + rows.nbytes > self._limit:
            file = self._new_file()
            with file_errors(self._folder):
                file.write(self._memory)
            self._place, self._file, self._memory = len(self._memory), file, bytearray()
        if self._file is None:
            self._memory += rows.tobytes()
        else:
            with file_errors(self._folder):
                self._move_to(self._file, self._count * self.kind.itemsize)
                self._file.write(rows.tobytes())
            self._place += rows.nbytes
        numbers = range(self._count, self._count + len(rows))
        if isinstance(keys, int):
            self._index.setdefault(keys, array("q")).extend(numbers)
        else:
            for key, number in zip(keys, numbers, strict=True):
                self._index.setdefault(key, array("q")).append(number)
        self._count += len(rows)

    def count(self, key: int) -> int:
        """Return the number of rows of a key."""
        return len(self._index.get(key, ()))

    def part(self, first: int, count: int) -> Rows:
        """Return `count` rows from row number `first` on."""
        start, size = self._begin + first * self.kind.itemsize, count * self.kind.itemsize
        if self._file is None:
            return np.frombuffer(bytes(self._memory[start : start + size]), self.kind)
        with file_errors(self._folder):
            self._move_to(self._file, start)
            data = self._file.read(size)
        self._place = self._place + len(data) if self._is_owner else -1
        return np.frombuffer(data, self.kind)

    def blocks(self) -> Iterator[Rows]:
        """Yield all rows, some thousand at a time."""
        for first in range(0, self._count, _ROWS_PER_READ):
            yield self.part(first, min(_ROWS_PER_READ, self._count - first))

    def read(self, key: int) -> Rows:
        """Return all rows of a key."""
        rows = np.zeros(self.count(key), self.kind)
        first = 0
        for block in self.portions(key, _ROWS_PER_READ):
            rows[first : first + len(block)] = block
            first += len(block)
        return rows

    def portions(self, key: int, max_rows: int = _ROWS_PER_READ) -> Iterator[Rows]:
        """Yield the rows of a key, at most `max_rows` at a time."""
        for start in range(0, self.count(key), max_rows):
            numbers = np.array(self._index[key][start : start + max_rows])
            first, span = int(numbers[0]), int(numbers[-1] - numbers[0]) + 1
            if span > _SPARSE * len(numbers):
                yield np.concatenate([self.part(number, 1) for number in numbers.tolist()])
            else:
                part = self.part(first, span)
                yield part if span == len(numbers) else part[numbers - first]

    def close(self) -> None:
        """Delete the rows."""
        if self._file is not None and self._is_owner:
            with suppress(OSError):
                self._file.close()
        self._memory = bytearray()

    def _new_file(self) -> IO[bytes]:
        with file_errors(self._folder):  # open as long as the rows are needed
            return tempfile.TemporaryFile(dir=self._folder)

    def _move_to(self, file: IO[bytes], place: int) -> None:
        if self._place != place:  # seeking writes the buffer
            file.seek(place)
            self._place = place
