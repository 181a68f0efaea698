"""Reader of one person's 2D keypoints from an .npz file, the input of `pose-lift`.

docs/reference/outputs.md lists the keys.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError, UsageError
from pose.results.checks import MAX_SIDE_PX, check_times
from pose.structures.camera import Camera, check_intrinsics
from pose.structures.incoming import check_units, checked_keypoints
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import SKELETONS
from pose.utils.archives import format_names, open_arrays

REQUIRED = ("keypoints", "scores", "timestamps", "image_size", "skeleton")
OPTIONAL = ("intrinsics",)

Arrays = dict[str, NDArray[np.generic]]


def read_keypoints(path: Path) -> Sequence2D:
    """Read and check one person's keypoints; UsageError if the file is missing, PoseError if it is invalid.

    Keypoints with score 0 were not detected; their coordinates may have any value, including NaN, and become 0.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    arrays = _load(path)
    try:
        sequence = _sequence(arrays)
        check_units(sequence.keypoints, sequence.scores, sequence.times, sequence.camera.size, f"{path}: ")
    except ValueError as error:
        raise PoseError(f"{path}: {error}") from error
    return sequence


def _load(path: Path) -> Arrays:
    with open_arrays(path) as arrays:
        missing = [name for name in REQUIRED if name not in arrays]
        if missing:
            found = format_names(arrays)
            raise PoseError(f"{path}: key {missing[0]!r} is missing; needed: {', '.join(REQUIRED)}; found: {found}")
        if "id" in arrays:  # rows of `pose-run`, one for each person and frame
            _check_one_person(path, arrays["id"], len(arrays["timestamps"]))
        return {name: arrays[name] for name in (*REQUIRED, *OPTIONAL) if name in arrays}


def _check_one_person(path: Path, ids: NDArray[np.generic], frames: int) -> None:
    if ids.size == 0:
        raise PoseError(f"{path}: contains no person")
    if ids.shape != (frames,) or (ids != ids[0]).any():
        raise PoseError(
            f"{path}: a result of pose-run, not the keypoints of one person in every frame; extract a person with: "
            f"pose-prepare sequence --source {path} --person {ids.flat[0]} --out keypoints.npz"
        )


def _sequence(arrays: Arrays) -> Sequence2D:
    name = arrays["skeleton"]
    if name.ndim != 0 or name.dtype.kind not in "US":
        raise ValueError(f"skeleton: expected one name, got an array of shape {name.shape} and type {name.dtype}")
    skeleton = name.item().decode() if name.dtype.kind == "S" else name.item()
    if skeleton not in SKELETONS:
        raise ValueError(f"skeleton: unknown name {skeleton[:40]!r}; known: {', '.join(SKELETONS)}")
    times = _numbers(arrays, "timestamps", (None,))
    t, j = len(times), len(SKELETONS[skeleton])
    if t == 0:
        raise ValueError("timestamps: empty")
    keypoints = _numbers(arrays, "keypoints", (t, j, 2))
    scores = _numbers(arrays, "scores", (t, j))
    size = _numbers(arrays, "image_size", (2,))
    intrinsics = _numbers(arrays, "intrinsics", (3, 3)) if "intrinsics" in arrays else None
    check_times(times)
    if not (np.isfinite(size).all() and (size >= 1).all() and (size <= MAX_SIDE_PX).all()):
        raise ValueError(f"image_size: expected width and height in px, got {size.tolist()}")
    if intrinsics is not None:
        check_intrinsics(intrinsics)
    camera = Camera.of((round(float(size[0])), round(float(size[1]))), intrinsics)
    keypoints = np.where(np.isfinite(keypoints), np.clip(keypoints, -1e30, 1e30), keypoints)  # finite as float32
    return checked_keypoints(
        Sequence2D(keypoints.astype(np.float32), scores.astype(np.float32), times, camera, skeleton)
    )


def _numbers(arrays: Arrays, name: str, shape: tuple[int | None, ...]) -> NDArray[np.float64]:
    array = arrays[name]
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{name}: expected numbers, got {array.dtype}")
    same = array.ndim == len(shape) and all(w in (None, h) for w, h in zip(shape, array.shape, strict=True))
    if not same:
        expected = "(T,)" if shape == (None,) else str(shape)
        raise ValueError(f"{name}: expected shape {expected}, got {array.shape}")
    return array.astype(np.float64)
