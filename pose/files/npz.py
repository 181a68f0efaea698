"""`poses.npz`: the results of a run as arrays, one row for each person and frame. docs/outputs.md lists the keys.

While the run lasts every array grows in a nameless temporary file beside the target, so memory stays flat and nothing
is left if the process dies. `close` puts the headers before them and zips them, uncompressed as `numpy.savez` does:
noisy floats hardly shrink, and the file opens at once.
"""

import json
import math
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from pose.files.run_info import RunInfo
from pose.files.writer import WriterContext, close_scratch
from pose.skeletons import H36M17
from pose.system.whole_file import file_errors, whole_file
from pose.types import FrameResult

FORMAT_VERSION = 1
_CHUNK_BYTES = 1 << 18
_PER_FRAME = ("timestamps", "frames")


class _Spool:
    """An array whose first axis grows in a file."""

    def __init__(self, folder: Path, dtype: str, row: tuple[int, ...]) -> None:
        self.dtype = np.dtype(dtype)
        self.row = row
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - lives as long as the writer

    def append(self, rows: NDArray[np.generic]) -> None:
        assert rows.shape[1:] == self.row, (rows.shape, self.row)
        self._file.write(rows.astype(self.dtype).tobytes())

    def copy_to(self, stream: IO[bytes], rows: int) -> None:
        """Write the first `rows` rows as an .npy file."""
        shape = (rows, *self.row)
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        self._file.seek(0)
        left = math.prod(shape) * self.dtype.itemsize
        while left:
            chunk = self._file.read(min(left, _CHUNK_BYTES))
            assert chunk, "a spool is shorter than its count"
            stream.write(chunk)
            left -= len(chunk)

    def close(self) -> None:
        close_scratch(self._file)


class NpzWriter(WriterContext):
    """Writes `poses.npz`. Implements `ResultWriter`."""

    def __init__(self, path: Path, info: RunInfo) -> None:
        self._path = path
        self._info = info
        self._open = True
        self._whole = (0, 0)  # frames and rows that all arrays have: an interrupt may come between two arrays
        j3 = len(H36M17)
        j2 = len(info.skeleton)
        layout: dict[str, tuple[str, tuple[int, ...]]] = {
            "timestamps": ("<f8", ()),
            "frames": ("<i8", ()),
            "frame_index": ("<i8", ()),
            "time": ("<f8", ()),
            "id": ("<i8", ()),
            "box": ("<f4", (4,)),
            "box_score": ("<f4", ()),
            "keypoints": ("<f4", (j2, 2)),
            "scores": ("<f4", (j2,)),
            "joints3d": ("<f4", (j3, 3)),
            "root": ("<f4", (3,)),
            "sigma": ("<f4", (j3,)),
            "exchanged": ("|b1", (2,)),
        }
        with file_errors(path):
            self._spools = {name: _Spool(path.parent, dtype, row) for name, (dtype, row) in layout.items()}

    def write(self, result: FrameResult) -> None:
        people, poses = result.people, result.poses
        n = len(people)
        rows: dict[str, NDArray[np.generic]] = {
            "timestamps": np.array([result.time]),
            "frames": np.array([result.index]),
        }
        if n:
            rows |= {
                "frame_index": np.full(n, result.index),
                "time": np.full(n, result.time),
                "id": people.ids,
                "box": people.boxes,
                "box_score": people.box_scores,
                "keypoints": people.keypoints,
                "scores": people.scores,
                "joints3d": poses.joints,
                "root": poses.root,
                "sigma": poses.sigma,
                "exchanged": poses.exchanged,
            }
        with file_errors(self._path):
            for name, values in rows.items():
                self._spools[name].append(values)
        frames, people_rows = self._whole
        self._whole = frames + 1, people_rows + n

    def close(self, complete: bool = True) -> None:
        if not self._open:
            return
        try:
            with whole_file(self._path) as hidden, zipfile.ZipFile(hidden, "w", allowZip64=True) as archive:
                frames, rows = self._whole
                for name, spool in self._spools.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                        spool.copy_to(stream, frames if name in _PER_FRAME else rows)
                    spool.close()
                for name, value in _constants(self._info, complete).items():
                    with archive.open(f"{name}.npy", "w") as stream:
                        np.lib.format.write_array(stream, value, allow_pickle=False)
        finally:
            self.abort()

    def abort(self) -> None:
        self._open = False
        for spool in self._spools.values():
            spool.close()


def _constants(info: RunInfo, complete: bool) -> Mapping[str, NDArray[np.generic]]:
    return {
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
