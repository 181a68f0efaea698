"""`--intrinsics`: camera matrix or lens calibration from the command line or a file."""

import json
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pose.errors import PoseError, UsageError
from pose.structures.camera import Camera, check_intrinsics
from pose.utils.archives import load_array
from pose.utils.json_values import Json
from pose.utils.shown import shown

FORMS = "fx,fy,cx,cy, or a file with the 3x3 matrix (.npy, .json or text) or a calibration (docs/guides/world.md)"


def read_intrinsics(text: str) -> NDArray[np.float64] | Camera:
    """Return the camera matrix (3, 3) in px from `fx,fy,cx,cy` or a file, or the camera of a calibration file."""
    path = Path(text)
    if path.is_file() and (path.suffix == ".toml" or (path.suffix == ".json" and b"{" in path.read_bytes()[:4096])):
        from pose.multiview.calibration_files import read_camera

        return read_camera(path)
    try:
        values = _from_file(path) if _is_file(path) else [float(part) for part in text.split(",")]
        numbers = np.asarray(values, np.float64)
    except (PoseError, ValueError, TypeError, OSError, RecursionError) as error:
        raise UsageError(f"intrinsics: cannot read {shown(text, 60)!r}; allowed: {FORMS}") from error
    if numbers.shape == (4,):
        fx, fy, cx, cy = numbers
        numbers = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    try:
        check_intrinsics(numbers)
    except ValueError as error:
        raise UsageError(f"{error}; allowed: {FORMS}") from error
    return numbers


def camera_values(intrinsics: NDArray[np.float64] | Camera) -> Json:
    """Return plain values that identify the camera."""
    if not isinstance(intrinsics, Camera):
        return cast(Json, intrinsics.tolist())
    lens = [intrinsics.lens.name, *intrinsics.lens.coefficients]
    return cast(Json, [intrinsics.matrix.tolist(), *intrinsics.size, *lens])


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, or contains a null byte
        return False


def _from_file(path: Path) -> ArrayLike:
    if path.suffix == ".npy":
        return load_array(path)
    if path.suffix == ".json":
        result: ArrayLike = json.loads(path.read_text(encoding="utf-8-sig"))
        return result
    return np.loadtxt(
        path, encoding="utf-8-sig", delimiter="," if "," in path.read_text(encoding="utf-8-sig") else None
    )
