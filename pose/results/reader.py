"""Reader of `poses.npz` and of results of `pose-lift`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError, UsageError
from pose.results.checks import check_table, parse_head
from pose.results.npz import FORMAT_VERSION
from pose.results.run_info import RunInfo, WorldInfo
from pose.results.schema import FRAME_COLUMNS, FRAME_NAMES, ROW_COLUMNS
from pose.results.table import PoseTable
from pose.structures.columns import Array, columns_of
from pose.structures.defaults import RESULT_NPZ
from pose.structures.skeletons import H36M17, SKELETONS
from pose.structures.types import People, Poses3D
from pose.utils.archives import open_arrays
from pose.utils.shown import shown

T = TypeVar("T", bound=np.generic)


def result_file(path: Path) -> Path:
    """Return `path` itself if it is a file, or `poses.npz` inside a result folder."""
    return path / RESULT_NPZ if path.is_dir() else path


def load_poses(path: Path | str, *, mapped: bool = False) -> PoseTable:
    """Read and validate a result of `pose-run` or `pose-lift`.

    Args:
        path: Result file, or a folder with `poses.npz`.
        mapped: Whether to memory-map large arrays (`numpy.memmap`).

    Raises:
        UsageError: If the file does not exist.
        PoseError: If the file is invalid.
    """
    path = result_file(Path(path))
    arrays = _read_arrays(path, mapped)
    try:
        table = _from_run(path, arrays) if "format_version" in arrays else _from_lift(arrays)
        check_table(table)
        return table
    except KeyError as error:
        raise PoseError(
            f"{path}: has no array {error.args[0]!r}, so it is not a poses.npz of pose-run or pose-lift"
        ) from error
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise PoseError(f"{path}: {error}") from error


def _read_arrays(path: Path, mapped: bool) -> dict[str, Array]:
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    with open_arrays(path) as arrays:
        return {name: arrays.mapped(name) if mapped else arrays[name] for name in arrays}


def _from_run(path: Path, arrays: Mapping[str, Array]) -> PoseTable:
    version = int(_shaped(arrays, "format_version", (), np.int64))
    if not 1 <= version <= FORMAT_VERSION:
        raise PoseError(f"{path}: has format version {version}; supported versions: 1 to {FORMAT_VERSION}")
    name = str(arrays["skeleton"])
    if name not in SKELETONS:
        raise PoseError(f"{path}: unknown skeleton {name!r}; known: {', '.join(SKELETONS)}")
    skeleton, run = SKELETONS[name], _run_info(arrays)
    return PoseTable(
        columns=_columns(arrays, len(skeleton)),
        skeleton=skeleton,
        world_info=run.world,
        run=run,
        complete=bool(_shaped(arrays, "complete", (), np.bool_)),
        format_version=version,
    )


def _from_lift(arrays: Mapping[str, Array]) -> PoseTable:
    """Make the table of a `pose-lift` result: one person, whose 2D keypoints are unknown and have score 0."""
    count, joints = len(arrays["timestamps"]), len(H36M17)
    missing = {"frames": np.arange(count), "frame_index": np.arange(count), "time": arrays["timestamps"]}
    missing |= {one.name: one.filled(count, joints) for one in columns_of(People)} | {"id": np.ones(count, np.int64)}
    return PoseTable(
        columns=_columns({**arrays, **missing}, joints),
        skeleton=H36M17,
        world_info=WorldInfo.from_json(parse_head(arrays["world_info"])) if "world_info" in arrays else None,
    )


def _columns(arrays: Mapping[str, Array], keypoints: int) -> dict[str, Array]:
    """Return the columns of a result, by name; see `Column` for missing ones.

    Args:
        arrays: Arrays of the file.
        keypoints: Number of 2D keypoints.

    Raises:
        KeyError: If a required array is missing.
        ValueError: If an array has another shape or type.
    """
    frames, rows = len(arrays["frames"]), len(arrays["frame_index"])
    parts = {"", *(one.part for one in ROW_COLUMNS if one.required and one.name in arrays)}
    columns = {}
    for one in (*FRAME_COLUMNS, *ROW_COLUMNS):
        count = frames if one.name in FRAME_NAMES else rows
        if one.name in arrays or (one.required and one.part in parts):
            columns[one.name] = _shaped(arrays, one.name, (count, *one.row_shape(keypoints)), np.dtype(one.dtype).type)
        elif one.attribute and (one.part in parts or one in columns_of(Poses3D)):
            columns[one.name] = one.filled(count)
    return columns


def _run_info(arrays: Mapping[str, Array]) -> RunInfo:
    """Return the metadata of the run, with rounded numbers of the JSON text replaced by those of arrays."""
    try:
        run = RunInfo.from_json(parse_head(arrays["run"]))
    except KeyError as error:
        raise ValueError(f"its array 'run' lacks {shown(str(error.args[0]), 80)!r}") from error
    width, height = _shaped(arrays, "image_size", (2,), np.int64)
    matrix = _shaped(arrays, "intrinsics", (3, 3), np.float64)
    camera = replace(run.camera, matrix=matrix, size=(int(width), int(height)))
    return replace(run, camera=camera, fps=float(_shaped(arrays, "fps", (), np.float64)), world=_world(run, arrays))


def _world(run: RunInfo, arrays: Mapping[str, Array]) -> WorldInfo | None:
    if run.world is None or "world_rotation" not in arrays:
        return run.world
    rotation = _shaped(arrays, "world_rotation", (3, 3), np.float64)
    floor = float(_shaped(arrays, "world_floor", (), np.float64))
    return replace(run.world, world=replace(run.world.world, rotation=rotation, floor=floor))


def _shaped(arrays: Mapping[str, Array], name: str, shape: tuple[int, ...], kind: type[T]) -> NDArray[T]:
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
