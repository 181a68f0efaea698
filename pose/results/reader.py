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
from pose.results.table import PoseTable
from pose.structures.camera import Camera
from pose.structures.defaults import RESULT_NPZ
from pose.structures.face_points import POINTS as FACE_POINTS
from pose.structures.hand_points import POINTS
from pose.structures.skeletons import H36M17, LIMBS, SKELETONS
from pose.structures.types import F32, Array, Placed
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
    skeleton = SKELETONS[name]
    frames, rows, j = len(arrays["frames"]), len(arrays["frame_index"]), len(skeleton)
    run = _run_info(arrays)
    return PoseTable(
        frames=_shaped(arrays, "frames", (frames,), np.int64),
        timestamps=_shaped(arrays, "timestamps", (frames,), np.float64),
        frame_index=_shaped(arrays, "frame_index", (rows,), np.int64),
        time=_shaped(arrays, "time", (rows,), np.float64),
        id=_shaped(arrays, "id", (rows,), np.int64),
        box=_shaped(arrays, "box", (rows, 4), np.float32),
        box_score=_shaped(arrays, "box_score", (rows,), np.float32),
        keypoints=_shaped(arrays, "keypoints", (rows, j, 2), np.float32),
        scores=_shaped(arrays, "scores", (rows, j), np.float32),
        joints3d=_shaped(arrays, "joints3d", (rows, 17, 3), np.float32),
        root=_shaped(arrays, "root", (rows, 3), np.float32),
        sigma=_shaped(arrays, "sigma", (rows, 17), np.float32),
        swapped=_shaped({"swapped": np.zeros((rows, 2), bool), **arrays}, "swapped", (rows, 2), np.bool_),
        ahead=_shaped({"ahead": np.zeros(rows, np.float32), **arrays}, "ahead", (rows,), np.float32),
        seen_by=_shaped({"seen_by": np.zeros((rows, 17), np.uint8), **arrays}, "seen_by", (rows, 17), np.uint8),
        skeleton=skeleton,
        placed=_placed(arrays, rows),
        world_info=run.world,
        run=run,
        complete=bool(_shaped(arrays, "complete", (), np.bool_)),
        format_version=version,
        camera_rotation=_optional(arrays, "camera_rotation", (frames, 3, 3)),
        camera_zoom=_optional(arrays, "camera_zoom", (frames,)),
        camera_sigma=_optional(arrays, "camera_sigma", (frames,)),
        camera_position=_optional(arrays, "camera_position", (frames, 3)),
        **_hands(arrays, rows),
        **_faces(arrays, rows),
    )


def _from_lift(arrays: Mapping[str, Array]) -> PoseTable:
    """Make the table of a `pose-lift` result: one person, whose 2D keypoints are unknown and have score 0."""
    t = len(arrays["timestamps"])
    j = len(H36M17)
    return PoseTable(
        frames=np.arange(t),
        timestamps=_shaped(arrays, "timestamps", (t,), np.float64),
        frame_index=np.arange(t),
        time=_shaped(arrays, "timestamps", (t,), np.float64),
        id=np.ones(t, np.int64),
        box=np.zeros((t, 4), np.float32),
        box_score=np.zeros(t, np.float32),
        keypoints=np.zeros((t, j, 2), np.float32),
        scores=np.zeros((t, j), np.float32),
        joints3d=_shaped(arrays, "joints3d", (t, j, 3), np.float32),
        root=_shaped(arrays, "root", (t, 3), np.float32),
        sigma=_shaped(arrays, "sigma", (t, j), np.float32),
        swapped=np.zeros((t, 2), bool),
        ahead=np.zeros(t, np.float32),
        seen_by=np.zeros((t, j), np.uint8),
        skeleton=H36M17,
        placed=_placed(arrays, t),
        world_info=WorldInfo.from_json(parse_head(arrays["world_info"])) if "world_info" in arrays else None,
    )


def _placed(arrays: Mapping[str, Array], rows: int) -> Placed | None:
    if "world" not in arrays:
        return None
    return Placed(
        joints=_shaped(arrays, "world", (rows, len(H36M17), 3), np.float32),
        root_sigma=_shaped(arrays, "root_sigma", (rows,), np.float32),
        contacts=_shaped(arrays, "contacts", (rows, 2), np.float32),
        filled=_shaped(arrays, "filled", (rows,), np.bool_),
        moved=_shaped(arrays, "moved", (rows,), np.float32),
        **{
            name: _shaped({name: np.zeros((rows, *shape), bool), **arrays}, name, (rows, *shape), np.bool_)
            for name, shape in (("doubtful", ()), ("partial", ()), ("inconsistent", (len(LIMBS),)))
        },
    )


def _hands(arrays: Mapping[str, Array], rows: int) -> dict[str, F32]:
    """Return the arrays of the hands by name; empty if hands were not estimated."""
    if "hand_keypoints" not in arrays:
        return {}
    return {
        name: _shaped(arrays, name, (rows, 2, POINTS, *last), np.float32)
        for name, last in (("hand_keypoints", (2,)), ("hand_scores", ()), ("hand_joints3d", (3,)), ("hand_sigma", ()))
        if name != "hand_sigma" or name in arrays
    }


def _faces(arrays: Mapping[str, Array], rows: int) -> dict[str, F32]:
    """Return the arrays of the faces by name; empty if faces were not estimated."""
    if "face_keypoints" not in arrays:
        return {}
    return {
        name: _shaped(arrays, name, (rows, *last), np.float32)
        for name, last in (("face_keypoints", (FACE_POINTS, 3)), ("face_scores", ()))
    }


def _optional(arrays: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> F32 | None:
    return _shaped(arrays, name, shape, np.float32) if name in arrays else None


def _run_info(arrays: Mapping[str, Array]) -> RunInfo:
    """Return the metadata of the run.

    Rounded numbers of the JSON text are replaced by those of arrays, which are not rounded.
    """
    try:
        run = RunInfo.from_json(parse_head(arrays["run"]))
    except KeyError as error:
        raise ValueError(f"its array 'run' lacks {shown(str(error.args[0]), 80)!r}") from error
    width, height = _shaped(arrays, "image_size", (2,), np.int64)
    camera = Camera(_shaped(arrays, "intrinsics", (3, 3), np.float64), run.camera.known, (int(width), int(height)))
    return replace(run, camera=camera, fps=float(_shaped(arrays, "fps", (), np.float64)), world=_world(run, arrays))


def _world(run: RunInfo, arrays: Mapping[str, Array]) -> WorldInfo | None:
    if run.world is None or "world_rotation" not in arrays:
        return run.world
    rotation = _shaped(arrays, "world_rotation", (3, 3), np.float64)
    floor = float(_shaped(arrays, "world_floor", (), np.float64))
    return replace(run.world, world=replace(run.world.world, rotation=rotation, floor=floor))


def _shaped(arrays: Mapping[str, Array], name: str, shape: tuple[int, ...], kind: type[T]) -> NDArray[T]:
    """Return an array after checking its shape, with data type `kind`.

    A memory-mapped array stays on disk if it has this type already.

    Raises:
        ValueError: If the array has another shape, or a type that cannot be converted safely.
    """
    array = arrays[name]
    if array.shape != shape:
        raise ValueError(f"array {name!r}: expected shape {shape}, got {array.shape}")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"array {name!r}: expected real numbers, got {array.dtype}")
    if not np.can_cast(array.dtype, kind, "same_kind"):
        raise ValueError(f"array {name!r}: expected {np.dtype(kind)}, got {array.dtype}")
    with np.errstate(over="ignore"):  # values beyond float32 become infinity
        return array.astype(kind, copy=False)
