"""Writer of `poses.npz`, the results of a run as arrays with one row per person and frame.

docs/reference/outputs.md lists the keys.

During the run the columns grow in files (`pose.results.column_files`). `close` adds the array headers and writes an
uncompressed zip archive, as `numpy.savez` does: noisy floats hardly compress, and an uncompressed file opens instantly.
"""

import json
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.results.column_files import FORMAT_VERSION, ColumnFiles
from pose.results.run_info import RunInfo, WorldInfo
from pose.results.writer import WriterContext
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult
from pose.utils.whole_file import WholeFile, file_errors
from pose.world.frame import World


class NpzWriter(WriterContext):
    """A writer of `poses.npz` that implements `ResultWriter`."""

    def __init__(self, path: Path, info: RunInfo, scratch: Path | None = None) -> None:
        """Open the temporary files."""
        self._path, self._info = path, info
        self._open = True
        self._finished: WholeFile | None = None
        self._columns = ColumnFiles(path, info, scratch)

    @property
    def frames(self) -> int:
        """Number of frames written."""
        return self._columns.frames

    @property
    def bytes(self) -> int:
        """Size of the completed file in bytes. The temporary files need additional space until it is complete."""
        return self._columns.bytes

    def set_world(self, world: WorldInfo) -> None:
        """Replace the description of the world. The run must have had world coordinates from its start."""
        assert self._info.world is not None
        self._info = replace(self._info, world=world)

    def keep_first(self, frames: int) -> None:
        """Drop all but the first `frames` frames, with the rows of the people in dropped or incomplete frames."""
        self._columns.keep_first(frames)

    def write(self, result: FrameResult) -> None:
        """Append the result of a frame; PoseError if that fails, as on a full disk."""
        self._columns.write(result)

    def finish(self, complete: bool = True) -> None:
        """Complete the file under its temporary name; `complete=False` marks the run as interrupted."""
        if not self._open or self._finished is not None:
            return
        file = WholeFile(self._path)
        try:
            with file_errors(self._path), zipfile.ZipFile(file.path, "w", allowZip64=True) as archive:
                for name, column in self._columns.files.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                        column.copy_to(stream, self._columns.count(name))
                    column.free()
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
        self._columns.close(remove=remove)


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
