"""Validation of result files: order of frames, ids and ranges. Failed checks raise ValueError with one line of text."""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from pose.results.recording import Recording
from pose.results.schema import ROW_COLUMNS
from pose.structures.camera import check_intrinsics
from pose.structures.defaults import MAX_ID
from pose.structures.types import F32, F64, I64, Array
from pose.utils.archives import release
from pose.utils.json_values import Json, strict_json

MAX_TIME_S = 1e10  # about 300 years, so that Unix times are valid
MIN_STEP_S = 5e-7  # minimum time between frames: Unix times in float64 have a resolution of about a microsecond
MAX_SIDE_PX = 1e6  # maximum side of an image
MAX_FPS = 1e6
MAX_TEXT_CHARS = 1 << 20  # maximum length of a run's metadata
_CHUNK_ROWS = 4096  # rows in memory at a time
_MAX_DISTANCE_M = 1e6  # maximum distance of a camera from its first position
_TOLERANCE = 1e-3  # tolerance for the rounding of float32


def check_times(times: F64) -> None:
    """Check that times (F,) are finite, increasing, and in seconds."""
    if not np.isfinite(times).all():
        raise ValueError(f"timestamps: NaN or infinity at frame {np.flatnonzero(~np.isfinite(times))[0]}")
    if np.abs(times).max(initial=0) > MAX_TIME_S:
        raise ValueError(f"timestamps: beyond {MAX_TIME_S:g} s; expected seconds")
    steps = np.diff(times)
    if not (steps > 0).all():
        frame = int(np.flatnonzero(steps <= 0)[0]) + 1
        raise ValueError(
            f"timestamps: must increase, but frame {frame} is at {times[frame]:g} s after {times[frame - 1]:g} s"
        )
    if not (steps >= MIN_STEP_S).all():
        raise ValueError(f"timestamps: frames are less than {MIN_STEP_S:g} s apart; expected seconds")


def _check_views(table: Recording) -> None:
    """Check the arrays of a moving camera: complete or absent, valid rotation matrices, and positive zooms."""
    views = table.camera_rotation, table.camera_zoom, table.camera_sigma
    if all(view is None for view in views):
        if table.camera_position is not None:
            raise ValueError("camera_position: requires camera_rotation")
        return
    if table.camera_rotation is None or table.camera_zoom is None or table.camera_sigma is None:
        raise ValueError("camera_rotation, camera_zoom and camera_sigma: expected all three, or none")
    rotations = table.camera_rotation.astype(np.float64)
    if not np.abs(rotations @ np.swapaxes(rotations, 1, 2) - np.eye(3)).max(initial=0) < _TOLERANCE:
        raise ValueError("camera_rotation: expected (3, 3) rotation matrices")
    if not ((table.camera_zoom > 0) & (table.camera_zoom < np.inf)).all():
        raise ValueError("camera_zoom: expected numbers above 0")
    if table.camera_position is not None and not (np.abs(table.camera_position) < _MAX_DISTANCE_M).all():
        raise ValueError(f"camera_position: expected numbers of at most {_MAX_DISTANCE_M:g} m")


def parse_head(text: Array) -> Mapping[str, Json]:
    """Parse the JSON object in a zero-dimensional string array."""
    if text.ndim or text.dtype.kind not in "US" or text.nbytes > 4 * MAX_TEXT_CHARS:
        raise ValueError(f"array 'run': expected one string of at most {MAX_TEXT_CHARS} characters")
    head = strict_json(text.item())
    if not isinstance(head, dict):
        raise ValueError("array 'run': expected a JSON object")
    return head


def check_table(table: Recording) -> None:
    """Check the values of a result: order of frames, ids, ranges of numbers, and camera motion."""
    check_times(np.asarray(table.timestamps))
    _check_frames(np.asarray(table.frames), np.asarray(table.frame_index), np.asarray(table.id))
    at = np.searchsorted(table.frames, table.frame_index)
    if len(at) and not np.abs(table.time - table.timestamps[at]).max() <= _TOLERANCE:
        raise ValueError("time: does not match the time stamp of the row's frame")
    for one in ROW_COLUMNS:
        if one.limits is not None and one.name in table.columns:
            _check_range(one.name, getattr(table, one.name), *one.limits)
    _check_views(table)
    if table.run is not None:
        _check_run(table.run.fps, table.run.camera.size, table.run.camera.matrix)


def _check_frames(frames: I64, of_rows: I64, ids: I64) -> None:
    if not (np.diff(frames) > 0).all():
        raise ValueError("frames: must increase")
    if len(frames) and not (frames[0] >= 0 and frames[-1] < MAX_ID):
        raise ValueError(f"frames: expected numbers of at least 0, got {frames[0]} to {frames[-1]}")
    if not (np.diff(of_rows) >= 0).all():
        row = int(np.flatnonzero(np.diff(of_rows) < 0)[0]) + 1
        raise ValueError(f"frame_index: rows must be in the order of the frames, but row {row} goes back")
    at = np.minimum(np.searchsorted(frames, of_rows), max(len(frames) - 1, 0))
    missing = frames[at] != of_rows if len(frames) else np.ones(len(of_rows), bool)
    if missing.any():
        raise ValueError(f"frame_index: frame {of_rows[missing][0]} of a person is not in 'frames'")
    del at, missing  # limits the memory for long results
    if len(ids) and not (ids.min() >= 0 and ids.max() < MAX_ID):
        raise ValueError(f"id: expected numbers of at least 0, got {ids.min()} to {ids.max()}")
    if (np.diff(ids)[np.diff(of_rows) == 0] > 0).all():
        return  # ids increase within every frame, so none occurs twice
    order = np.lexsort((ids, of_rows))
    duplicate = (np.diff(of_rows[order]) == 0) & (np.diff(ids[order]) == 0)
    if duplicate.any():
        row = order[int(np.flatnonzero(duplicate)[0])]
        raise ValueError(f"id: {ids[row]} occurs twice in frame {of_rows[row]}")


def _check_range(name: str, values: F32, minimum: float, maximum: float) -> None:
    for part in _parts(values):
        with np.errstate(invalid="ignore"):
            wrong = (part < minimum - _TOLERANCE) | (part > maximum + _TOLERANCE)
        if wrong.any():
            raise ValueError(f"{name}: expected {minimum:g} to {maximum:g}, got {part[wrong][0]:g}")


def _parts(values: F32) -> Iterator[F32]:
    for start in range(0, len(values), _CHUNK_ROWS):
        yield np.asarray(values[start : start + _CHUNK_ROWS])
        release(values)


def _check_run(fps: float, size: tuple[int, int], matrix: F64) -> None:
    if not 0 < fps <= MAX_FPS:
        raise ValueError(f"fps: expected frames/s, got {fps:g}")
    if not all(1 <= side <= MAX_SIDE_PX for side in size):
        raise ValueError(f"image_size: expected width and height in px, got {size[0]} x {size[1]}")
    check_intrinsics(matrix)
    if not (np.abs(matrix) <= 1e9).all() or not math.isfinite(float(np.linalg.det(matrix))):
        raise ValueError("intrinsics: expected an invertible matrix in px")
