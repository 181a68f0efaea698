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
from pose.results.writer import WriterContext, close_scratch, write_all
from pose.structures.face_points import ANGLES, MEASURES, Faces, head_angles, measures
from pose.structures.face_points import POINTS as FACE_POINTS
from pose.structures.hand_points import POINTS, Hands, sigma_of, sized_to_body
from pose.structures.skeletons import H36M17, LIMBS
from pose.structures.types import FrameResult
from pose.utils.whole_file import WholeFile, file_errors
from pose.world.frame import World

FORMAT_VERSION = 2
_CHUNK_BYTES = 1 << 18
_MAX_HEADER_BYTES = 1 << 16  # maximum size of array headers and of arrays without rows, in bytes
# Additional arrays with a moving camera (`pose.structures.types.CameraView`): name -> data type, and shape of one row.
_VIEW: dict[str, tuple[str, tuple[int, ...]]] = {
    "camera_rotation": ("<f4", (3, 3)),
    "camera_zoom": ("<f4", ()),
    "camera_sigma": ("<f4", ()),
}
# Additional array if the camera also changes its position.
_POSITION: dict[str, tuple[str, tuple[int, ...]]] = {"camera_position": ("<f4", (3,))}
# Additional arrays with hands (`pose.structures.hand_points`).
_HANDS: dict[str, tuple[str, tuple[int, ...]]] = {
    "hand_keypoints": ("<f4", (2, POINTS, 2)),
    "hand_scores": ("<f4", (2, POINTS)),
    "hand_joints3d": ("<f4", (2, POINTS, 3)),
    "hand_sigma": ("<f4", (2, POINTS)),
}
# Additional arrays with faces (`pose.structures.face_points`).
_FACES: dict[str, tuple[str, tuple[int, ...]]] = {
    "face_keypoints": ("<f4", (FACE_POINTS, 3)),
    "face_scores": ("<f4", ()),
    "face_angles": ("<f4", (len(ANGLES),)),
    "face_measures": ("<f4", (len(MEASURES),)),
}
_PER_FRAME = ("timestamps", "frames", *_VIEW, *_POSITION)
# Additional arrays with world coordinates (`pose.structures.types.Placed`).
_PLACED: dict[str, tuple[str, tuple[int, ...]]] = {
    "world": ("<f4", (len(H36M17), 3)),
    "root_sigma": ("<f4", ()),
    "contacts": ("<f4", (2,)),
    "filled": ("|b1", ()),
    "moved": ("<f4", ()),
    "partial": ("|b1", ()),
    "inconsistent": ("|b1", (len(LIMBS),)),
}


class _Spool:
    """An array in a temporary file, to which rows can be appended.

    Attributes:
        rows: Number of complete rows in the file.
    """

    def __init__(self, folder: Path, dtype: str, row: tuple[int, ...], path: Path | None) -> None:
        """Open the temporary file.

        Args:
            folder: Folder of an unnamed file.
            dtype: Data type of the array.
            row: Shape of one row.
            path: Path of a named file, to which rows are appended if it exists; None makes an unnamed file.
        """
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
        """Open the temporary files.

        Args:
            path: Final path.
            info: Metadata of the run.
            scratch: Folder for named temporary files; None for unnamed ones. Files that an earlier writer left there
                are continued. The folder is kept if `close` fails.
        """
        self._path = path
        self._scratch = scratch
        self._info = info
        self._open = True
        self._finished: WholeFile | None = None
        self._complete_counts = (0, 0)  # complete frames and rows; an interrupt may come between two arrays
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
            "swapped": ("|b1", (2,)),
            "ahead": ("<f4", ()),
            "doubtful": ("|b1", ()),
        }
        if info.world is not None:
            layout |= _PLACED
        if info.motion is not None and info.motion.compensated:
            layout |= _VIEW
            if info.motion.motion.translation_known or (info.world is not None and info.world.scenes):
                layout |= _POSITION
        if info.has_hands:
            layout |= _HANDS
        if info.has_faces:
            layout |= _FACES
        if info.cameras:
            layout |= {"seen_by": ("|u1", (j3,))}
        with file_errors(path):
            if scratch is not None:
                scratch.mkdir(exist_ok=True)
                # The earlier writer may be of an older version, with fewer arrays.
                if existing := {file.name for file in scratch.iterdir()} & layout.keys():
                    layout = {name: kind for name, kind in layout.items() if name in existing}
            self._spools = {
                name: _Spool(path.parent, dtype, row, None if scratch is None else scratch / name)
                for name, (dtype, row) in layout.items()
            }
            self.keep_first(min(spool.rows for name, spool in self._spools.items() if name in _PER_FRAME))

    @property
    def frames(self) -> int:
        """Number of frames written."""
        return self._complete_counts[0]

    @property
    def bytes(self) -> int:
        """Size of the completed file in bytes. The temporary files need additional space until it is complete."""
        frames, rows = self._complete_counts
        counts = ((frames if name in _PER_FRAME else rows, spool) for name, spool in self._spools.items())
        return _MAX_HEADER_BYTES + sum(count * spool.row_bytes for count, spool in counts)

    def set_world(self, world: WorldInfo) -> None:
        """Replace the description of the world. The run must have had world coordinates from its start."""
        assert self._info.world is not None
        self._info = replace(self._info, world=world)

    def keep_first(self, frames: int) -> None:
        """Drop all but the first `frames` frames, with the rows of the people in dropped or incomplete frames."""
        rows = min(spool.rows for name, spool in self._spools.items() if name not in _PER_FRAME)
        last = self._spools["frames"].read(frames)[-1:]
        of_rows = self._spools["frame_index"].read(rows)
        self._complete_counts = frames, int(np.searchsorted(of_rows, last, side="right")[0]) if frames else 0

    def write(self, result: FrameResult) -> None:
        """Append the result of a frame.

        Raises:
            PoseError: If a temporary file cannot be written, for example because the disk is full.
        """
        people, poses = result.people, result.poses
        n = len(people)
        rows: dict[str, NDArray[np.generic]] = {}
        if n:
            rows = {
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
                "swapped": poses.swapped,
                "ahead": poses.ahead,
            }
            if "doubtful" in self._spools:
                doubtful = np.isin(people.ids, self._info.doubtful)
                rows |= {"doubtful": doubtful if result.placed is None else result.placed.doubtful}
            if self._info.cameras:
                rows |= {"seen_by": poses.seen_by}
            if "hand_scores" in self._spools:
                rows |= hand_arrays(result)
            if "face_scores" in self._spools:
                rows |= face_arrays(result)
            if self._info.world is not None:
                assert result.placed is not None, "all people of a run with a world have world coordinates"
                rows |= {"world": result.placed.joints}
                rows |= {name: getattr(result.placed, name) for name in _PLACED if name != "world"}
        rows |= {"timestamps": np.array([result.time]), "frames": np.array([result.index])}
        if "camera_rotation" in self._spools:
            assert result.view is not None, "every frame of a moving camera has a view"
            view = result.view
            rows |= {"camera_rotation": view.rotation[None], "camera_zoom": np.array([view.zoom])}
            rows |= {"camera_sigma": np.array([view.sigma_degrees])}
            if "camera_position" in self._spools:
                assert view.position is not None, (
                    "every frame of a carried camera, or of a clip with scenes, has a position"
                )
                rows |= {"camera_position": view.position[None]}
        frames, people_rows = self._complete_counts
        with file_errors(self._path):
            for name, values in rows.items():
                if values.dtype.kind == "f" and np.isinf(values).any():  # unknown, like NaN
                    values = np.where(np.isinf(values), np.nan, values)
                self._spools[name].write(frames if name in _PER_FRAME else people_rows, values)
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
                        spool.copy_to(stream, frames if name in _PER_FRAME else rows)
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


def hand_arrays(result: FrameResult) -> dict[str, NDArray[np.generic]]:
    """Return the hands of the P people in a frame as the arrays of `poses.npz`. The second axis is left, right.

    Returns:
        `hand_keypoints`: (P, 2, 21, 2) px. `hand_scores`: (P, 2, 21), 0 where not detected. `hand_joints3d`: (P, 2, 21,
        3) m relative to the wrist. `hand_sigma`: (P, 2, 21) mm. If hands were not estimated, none is detected.
    """
    people, poses = result.people, result.poses
    hands = people.hands if people.hands is not None else Hands.undetected(len(people))
    joints = sized_to_body(hands, poses.joints, poses.swapped)
    return {
        "hand_keypoints": hands.points,
        "hand_scores": hands.scores,
        "hand_joints3d": joints,
        "hand_sigma": sigma_of(hands, joints, poses.swapped),
    }


def face_arrays(result: FrameResult) -> dict[str, NDArray[np.generic]]:
    """Return the faces of the P people in a frame as the arrays of `poses.npz`.

    Returns:
        `face_keypoints`: (P, 468, 3) px. `face_scores`: (P,), 0 where not detected. `face_angles`: (P, 3) degrees, yaw,
        pitch and roll. `face_measures`: (P, 6), in the order of `pose.structures.face_points.MEASURES`. If faces were
        not
        estimated, none is detected.
    """
    people = result.people
    faces = people.faces if people.faces is not None else Faces.undetected(len(people))
    detected = faces.detected[:, None]
    return {
        "face_keypoints": faces.points,
        "face_scores": faces.scores,
        "face_angles": np.where(detected, head_angles(faces.points), np.nan).astype(np.float32),
        "face_measures": np.where(detected, measures(faces.points), np.nan).astype(np.float32),
    }


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
    """Return the transformation from camera to world coordinates as the arrays of `poses.npz`.

    world = world_rotation @ camera - (0, world_floor, 0), where camera is a point (3,) m in the camera frame.

    Returns:
        `world_rotation`: (3, 3). `world_floor`: Height of the floor in m, an array without axes.
    """
    return {"world_rotation": world.rotation, "world_floor": np.array(world.floor)}
