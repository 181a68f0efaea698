"""Reader of `poses.npz` and of results of `pose-lift`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from pose.errors import PoseError, UsageError
from pose.results.checks import check_table, parse_head
from pose.results.column_files import FORMAT_VERSION, read_columns, shaped
from pose.results.recording import Recording
from pose.results.run_info import RunInfo, WorldInfo
from pose.structures.columns import Array, columns_of
from pose.structures.defaults import RESULT_NPZ
from pose.structures.skeletons import H36M17, SKELETONS
from pose.structures.types import People
from pose.utils.archives import open_arrays
from pose.utils.shown import shown


def result_file(path: Path) -> Path:
    """Return `path` itself if it is a file, or `poses.npz` inside a result folder."""
    return path / RESULT_NPZ if path.is_dir() else path


def load_poses(path: Path | str, *, mapped: bool = False) -> Recording:
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


def _from_run(path: Path, arrays: Mapping[str, Array]) -> Recording:
    version = int(shaped(arrays, "format_version", (), np.int64))
    if not 1 <= version <= FORMAT_VERSION:
        raise PoseError(f"{path}: has format version {version}; supported versions: 1 to {FORMAT_VERSION}")
    name = str(arrays["skeleton"])
    if name not in SKELETONS:
        raise PoseError(f"{path}: unknown skeleton {name!r}; known: {', '.join(SKELETONS)}")
    skeleton, run = SKELETONS[name], _run_info(arrays)
    return Recording(
        columns=read_columns(arrays, len(skeleton)),
        skeleton=skeleton,
        world_info=run.world,
        run=run,
        complete=bool(shaped(arrays, "complete", (), np.bool_)),
        format_version=version,
    )


def _from_lift(arrays: Mapping[str, Array]) -> Recording:
    """Make the table of a `pose-lift` result: one person, whose 2D keypoints are unknown and have score 0."""
    count, joints = len(arrays["timestamps"]), len(H36M17)
    missing = {"frames": np.arange(count), "frame_index": np.arange(count), "time": arrays["timestamps"]}
    missing |= {one.name: one.filled(count, joints) for one in columns_of(People)} | {"id": np.ones(count, np.int64)}
    return Recording(
        columns=read_columns({**arrays, **missing}, joints),
        skeleton=H36M17,
        world_info=WorldInfo.from_json(parse_head(arrays["world_info"])) if "world_info" in arrays else None,
    )


def _run_info(arrays: Mapping[str, Array]) -> RunInfo:
    """Return the metadata of the run, with rounded numbers of the JSON text replaced by those of arrays."""
    try:
        run = RunInfo.from_json(parse_head(arrays["run"]))
    except KeyError as error:
        raise ValueError(f"its array 'run' lacks {shown(str(error.args[0]), 80)!r}") from error
    width, height = shaped(arrays, "image_size", (2,), np.int64)
    matrix = shaped(arrays, "intrinsics", (3, 3), np.float64)
    camera = replace(run.camera, matrix=matrix, size=(int(width), int(height)))
    return replace(run, camera=camera, fps=float(shaped(arrays, "fps", (), np.float64)), world=_world(run, arrays))


def _world(run: RunInfo, arrays: Mapping[str, Array]) -> WorldInfo | None:
    if run.world is None or "world_rotation" not in arrays:
        return run.world
    rotation = shaped(arrays, "world_rotation", (3, 3), np.float64)
    floor = float(shaped(arrays, "world_floor", (), np.float64))
    return replace(run.world, world=replace(run.world.world, rotation=rotation, floor=floor))
