"""Rows of one kind for many keys on disk: what is too much to be in memory for all keys together."""

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pose.system.whole_file import file_errors

Rows = NDArray[np.void]

_AT_ONCE = 4096  # rows that are read together


class RowFile:
    """Keeps structured rows by key, in the order in which they came, in a nameless temporary file.

    In memory are only where they lie: 16 bytes for each block that was added.
    """

    def __init__(self, kind: "np.dtype[Any]", folder: Path | None = None) -> None:
        """folder: that of the file; None: the system's for temporary files."""
        self.kind = kind
        self._folder = folder or Path(tempfile.gettempdir())
        self._blocks: dict[int, list[tuple[int, int]]] = {}  # by key: the first row's place in bytes, how many
        self._end = 0
        with file_errors(self._folder):
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - lives as long as the rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def keys(self) -> list[int]:
        """In the order in which they first came."""
        return list(self._blocks)

    def append(self, key: int, rows: Rows) -> None:
        """Add a block. Raises PoseError when the disk cannot take it."""
        assert rows.dtype == self.kind, (rows.dtype, self.kind)
        with file_errors(self._folder):
            self._file.seek(self._end)
            self._file.write(np.ascontiguousarray(rows).data)
        self._blocks.setdefault(key, []).append((self._end, len(rows)))
        self._end += rows.nbytes

    def read(self, key: int) -> Rows:
        """All rows of a key."""
        rows = np.zeros(sum(count for _, count in self._blocks.get(key, [])), self.kind)
        first = 0
        for block in self.portions(key, _AT_ONCE):
            rows[first : first + len(block)] = block
            first += len(block)
        return rows

    def portions(self, key: int, most: int) -> Iterator[Rows]:
        """The rows of a key, at most so many at a time."""
        for place, count in self._blocks.get(key, []):
            for first in range(0, count, most):
                part = min(most, count - first)
                with file_errors(self._folder):
                    self._file.seek(place + first * self.kind.itemsize)
                    data = self._file.read(part * self.kind.itemsize)
                yield np.frombuffer(data, self.kind)

    def close(self) -> None:
        """Nobody wants the rows any more."""
        with suppress(OSError):
            self._file.close()
