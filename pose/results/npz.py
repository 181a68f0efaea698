"""Writer of `poses.npz`, the results of a run as arrays with one row per person and frame.

docs/reference/outputs.md lists the keys.

During the run every array grows in a temporary file of its own, so memory is constant. By default these files are
unnamed, beside the target, and disappear if the process dies. With named files, a later process can complete the
result. `close` adds the array headers and writes an uncompressed zip archive, as `numpy.savez` does: noisy floats
hardly compress, and an uncompressed file opens instantly.
"""

import json
import math
import os
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from pose.results.run_info import RunInfo, WorldInfo
from pose.results.schema import FRAME_NAMES, columns_in, frame_arrays, row_arrays
from pose.results.writer import WriterContext, close_scratch, write_all
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult
from pose.utils.whole_file import WholeFile, file_errors
from pose.world.frame import World

FORMAT_VERSION = 2
_CHUNK_BYTES = 1 << 18
_MAX_HEADER_BYTES = 1 << 16  # maximum size of array headers and of arrays without rows, in bytes


class _Spool:
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


class NpzWriter(WriterContext):
    """A writer of `poses.npz` that implements `ResultWriter`."""

    def __init__(self, path: Path, info: RunInfo, scratch: Path | None = None) -> None:
        """Open the temporary files."""
        self._path = path
        self._scratch = scratch
        self._info = info
        self._open = True
        self._finished: WholeFile | None = None
        self._complete_counts = (0, 0)  # complete frames and rows; an interrupt may come between two arrays
        columns = list(columns_in(info))
        with file_errors(path):
            if scratch is not None:
                scratch.mkdir(exist_ok=True)
                # The earlier writer may be of an older version, with fewer arrays.
                if existing := {file.name for file in scratch.iterdir()} & {one.name for one in columns}:
                    columns = [one for one in columns if one.name in existing]
            self._spools = {
                one.name: _Spool(
                    path.parent,
                    one.dtype,
                    one.row_shape(len(info.skeleton)),
                    None if scratch is None else scratch / one.name,
                )
                for one in columns
            }
            self.keep_first(min(spool.rows for name, spool in self._spools.items() if name in FRAME_NAMES))

    @property
    def frames(self) -> int:
        """Number of frames written."""
        return self._complete_counts[0]

    @property
    def bytes(self) -> int:
        """Size of the completed file in bytes. The temporary files need additional space until it is complete."""
        frames, rows = self._complete_counts
        counts = ((frames if name in FRAME_NAMES else rows, spool) for name, spool in self._spools.items())
        return _MAX_HEADER_BYTES + sum(count * spool.row_bytes for count, spool in counts)

    def set_world(self, world: WorldInfo) -> None:
        """Replace the description of the world. The run must have had world coordinates from its start."""
        assert self._info.world is not None
        self._info = replace(self._info, world=world)

    def keep_first(self, frames: int) -> None:
        """Drop all but the first `frames` frames, with the rows of the people in dropped or incomplete frames."""
        rows = min(spool.rows for name, spool in self._spools.items() if name not in FRAME_NAMES)
        last = self._spools["frames"].read(frames)[-1:]
        of_rows = self._spools["frame_index"].read(rows)
        self._complete_counts = frames, int(np.searchsorted(of_rows, last, side="right")[0]) if frames else 0

    def write(self, result: FrameResult) -> None:
        """Append the result of a frame.

        Raises:
            PoseError: If a temporary file cannot be written, for example because the disk is full.
        """
        arrays = frame_arrays(result)
        if n := len(result.people):
            arrays |= row_arrays(result, self._spools.keys(), self._info.doubtful)
        needed = self._spools.keys() if n else self._spools.keys() & FRAME_NAMES
        missing = needed - arrays.keys()
        assert not missing, f"a frame without {missing}"
        frames, people_rows = self._complete_counts
        with file_errors(self._path):
            for name, spool in self._spools.items():
                if (values := arrays.get(name)) is None:
                    continue
                if values.dtype.kind == "f" and np.isinf(values).any():  # unknown, like NaN
                    values = np.where(np.isinf(values), np.nan, values)
                spool.write(frames if name in FRAME_NAMES else people_rows, values)
        self._complete_counts = frames + 1, people_rows + n

    def finish(self, complete: bool = True) -> None:
        """Complete the file under its temporary name; `complete=False` marks the run as interrupted.

        After an error nothing more can be written.
        """
        if not self._open or self._finished is not None:
            return
        file = WholeFile(self._path)
        try:
            with file_errors(self._path), zipfile.ZipFile(file.path, "w", allowZip64=True) as archive:
                frames, rows = self._complete_counts
                for name, spool in self._spools.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                        spool.copy_to(stream, frames if name in FRAME_NAMES else rows)
                    spool.free()
                for name, value in _constants(self._info, complete).items():
                    with archive.open(f"{name}.npy", "w") as stream:
                        np.lib.format.write_array(stream, value, allow_pickle=False)
        except BaseException:
            file.discard()
            self._release(remove=False)
            raise
        self._finished = file

    def commit(self) -> None:
        """Give the finished file its final name, and delete the temporary files."""
        if self._finished is None:
            return
        file, self._finished = self._finished, None
        try:
            file.commit()
            self._release(remove=True)
        finally:
            self._release(remove=False)

    def abort(self) -> None:
        """Delete the temporary files. A file that already has its final name is kept."""
        if self._finished is not None:
            self._finished.discard()
            self._finished = None
        self._release(remove=True)

    def _release(self, remove: bool) -> None:
        if not self._open:
            return
        self._open = False
        for spool in self._spools.values():
            spool.close(remove)
        if remove and self._scratch is not None:
            with suppress(OSError):
                self._scratch.rmdir()


def _constants(info: RunInfo, complete: bool) -> Mapping[str, NDArray[np.generic]]:
    return {
        **({} if info.world is None else world_arrays(info.world.world)),
        "format_version": np.array(FORMAT_VERSION, np.int64),
        "complete": np.array(complete),
        "image_size": np.array(info.camera.size, np.int64),
        "intrinsics": info.camera.matrix,
        "fps": np.array(info.fps, np.float64),
        "skeleton": np.array(info.skeleton.name),
        "keypoint_names": np.array(info.skeleton.names),
        "joint_names": np.array(H36M17.names),
        "run": np.array(json.dumps(info.to_dict(), allow_nan=False)),
    }


def world_arrays(world: World) -> dict[str, NDArray[np.generic]]:
    """Return `world_rotation` and `world_floor`: world = rotation @ camera - (0, floor, 0), in m."""
    return {"world_rotation": world.rotation, "world_floor": np.array(world.floor)}
