"""Columns of a result that grow frame by frame, each in a file of its own, so that memory does not grow.

Files are unnamed and disappear if the process dies, or have the names of their columns, so that a later process can
complete the result.
"""

import math
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
from numpy.typing import NDArray

from pose.results.run_info import RunInfo
from pose.results.schema import FRAME_COLUMNS, FRAME_NAMES, ROW_COLUMNS, columns_in, frame_arrays, row_arrays
from pose.results.writer import close_scratch, write_all
from pose.structures.columns import Array, columns_of
from pose.structures.types import FrameResult, Placed, Poses3D
from pose.utils.whole_file import file_errors

T = TypeVar("T", bound=np.generic)

FORMAT_VERSION = 2  # of `poses.npz`
_CHUNK_BYTES = 1 << 18
_MAX_HEADER_BYTES = 1 << 16  # maximum size of array headers and of arrays without rows, in bytes
_MEMORY_BYTES = 1 << 24  # larger columns of a `Recording` are memory maps


class ColumnFile:
    """An array in a temporary file, to which rows can be appended."""

    def __init__(self, folder: Path, dtype: str, row: tuple[int, ...], path: Path | None) -> None:
        """Open the temporary file; a named file is appended to if it exists."""
        self.dtype = np.dtype(dtype)
        self.row = row
        self.row_bytes = math.prod(row) * self.dtype.itemsize
        self._path = path
        if path is None:
            self._file: FileIO = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        else:
            self._file = path.open("r+b" if path.exists() else "w+b", buffering=0)

    @property
    def rows(self) -> int:
        return self._file.seek(0, os.SEEK_END) // self.row_bytes

    def write(self, first: int, rows: NDArray[np.generic]) -> None:
        """Write `rows`, starting at row number `first`."""
        assert rows.shape[1:] == self.row, (rows.shape, self.row)
        write_all(self._file, first * self.row_bytes, rows.astype(self.dtype).tobytes())

    def read(self, rows: int) -> NDArray[np.generic]:
        """Return the first `rows` rows."""
        self._file.seek(0)
        return np.frombuffer(self._file.read(rows * self.row_bytes), self.dtype).reshape(rows, *self.row)

    def array(self, rows: int) -> Array:
        """Return the first `rows` rows as an array, or as a memory map if they are many."""
        if rows * self.row_bytes > _MEMORY_BYTES:
            return np.memmap(self._file, self.dtype, "c", shape=(rows, *self.row))
        return self.read(rows).copy()

    def copy_to(self, stream: IO[bytes], rows: int) -> None:
        """Write the first `rows` rows to `stream` in .npy format."""
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": (rows, *self.row)}
        np.lib.format.write_array_header_1_0(stream, header)
        self._file.seek(0)
        remaining = rows * self.row_bytes
        while remaining:
            chunk = self._file.read(min(remaining, _CHUNK_BYTES))
            assert chunk, "a spool is shorter than its count"
            stream.write(chunk)
            remaining -= len(chunk)

    def free(self) -> None:
        """Delete an unnamed file, which frees its disk space."""
        if self._path is None:
            self.close()

    def close(self, remove: bool = False) -> None:
        close_scratch(self._file)
        if remove and self._path is not None:
            self._path.unlink(missing_ok=True)


class ColumnFiles:
    """Growing columns of a run: those of frames, and those of people in frames."""

    def __init__(self, target: Path, info: RunInfo, scratch: Path | None = None) -> None:
        """Open the files for the columns that `info` decides, unnamed ones beside the result file `target`.

        Named files in the folder `scratch` are continued if they exist. PoseError if a file cannot be created.
        """
        self.info, self._target, self._scratch = info, target, scratch
        self.frames = self.rows = 0  # complete ones; an interrupt may come between two columns
        columns = list(columns_in(info))
        with file_errors(target):
            if scratch is not None:
                scratch.mkdir(exist_ok=True)
                # The earlier writer may be of an older version, with fewer arrays.
                if existing := {file.name for file in scratch.iterdir()} & {one.name for one in columns}:
                    columns = [one for one in columns if one.name in existing]
            self.files = {
                one.name: ColumnFile(
                    target.parent,
                    one.dtype,
                    one.row_shape(len(info.skeleton)),
                    None if scratch is None else scratch / one.name,
                )
                for one in columns
            }
            self.keep_first(min(file.rows for name, file in self.files.items() if name in FRAME_NAMES))

    @property
    def bytes(self) -> int:
        """Size in bytes, with the headers of the arrays."""
        return _MAX_HEADER_BYTES + sum(self.count(name) * file.row_bytes for name, file in self.files.items())

    def count(self, name: str) -> int:
        """Return the number of rows of a column."""
        return self.frames if name in FRAME_NAMES else self.rows

    def keep_first(self, frames: int) -> None:
        """Drop all but the first `frames` frames, with the rows of the people in dropped or incomplete frames."""
        rows = min(file.rows for name, file in self.files.items() if name not in FRAME_NAMES)
        last = self.files["frames"].read(frames)[-1:]
        of_rows = self.files["frame_index"].read(rows)
        self.frames, self.rows = frames, int(np.searchsorted(of_rows, last, side="right")[0]) if frames else 0

    def write(self, result: FrameResult) -> None:
        """Append the result of a frame; PoseError if a file cannot be written, for example because the disk is full."""
        arrays = frame_arrays(result)
        if n := len(result.people):
            arrays |= row_arrays(result, self.files.keys(), self.info.doubtful)
        needed = self.files.keys() if n else self.files.keys() & FRAME_NAMES
        missing = needed - arrays.keys()
        assert not missing, f"a frame without {missing}"
        with file_errors(self._target):
            for name, file in self.files.items():
                if (values := arrays.get(name)) is None:
                    continue
                if values.dtype.kind == "f" and np.isinf(values).any():  # unknown, like NaN
                    values = np.where(np.isinf(values), np.nan, values)
                file.write(self.count(name), values)
        self.frames, self.rows = self.frames + 1, self.rows + n

    def arrays(self) -> dict[str, Array]:
        """Return all columns by name; large ones are memory maps, which stay valid after `close`."""
        return {name: file.array(self.count(name)) for name, file in self.files.items()}

    def close(self, *, remove: bool = False) -> None:
        """Close the files; unnamed ones are deleted, named ones with `remove` only."""
        for file in self.files.values():
            file.close(remove)
        if remove and self._scratch is not None:
            with suppress(OSError):
                self._scratch.rmdir()


def read_columns(arrays: Mapping[str, Array], keypoints: int) -> dict[str, Array]:
    """Return the columns of a result by name, filled where optional; KeyError or ValueError if invalid."""
    frames, rows = len(arrays["frames"]), len(arrays["frame_index"])
    parts = {"", *(one.part for one in ROW_COLUMNS if one.required and one.name in arrays)}
    always = (*columns_of(Poses3D), *(columns_of(Placed) if "world" in parts else ()))
    columns = {}
    for one in (*FRAME_COLUMNS, *ROW_COLUMNS):
        count = frames if one.name in FRAME_NAMES else rows
        if one.name in arrays or (one.required and one.part in parts):
            columns[one.name] = shaped(arrays, one.name, (count, *one.row_shape(keypoints)), np.dtype(one.dtype).type)
        elif one.attribute and (one.part in parts or one in always):
            columns[one.name] = one.filled(count, keypoints)
    return columns


def shaped(arrays: Mapping[str, Array], name: str, shape: tuple[int, ...], kind: type[T]) -> NDArray[T]:
    """Return an array as `kind` after checking its shape; a memory map of this type stays on disk."""
    array = arrays[name]
    if array.shape != shape:
        raise ValueError(f"array {name!r}: expected shape {shape}, got {array.shape}")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"array {name!r}: expected real numbers, got {array.dtype}")
    if not np.can_cast(array.dtype, kind, "same_kind"):
        raise ValueError(f"array {name!r}: expected {np.dtype(kind)}, got {array.dtype}")
    with np.errstate(over="ignore"):  # values beyond float32 become infinity
        return array.astype(kind, copy=False)
