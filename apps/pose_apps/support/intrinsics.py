"""`--intrinsics`: camera matrix from the command line or a file."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pose.errors import PoseError, UsageError
from pose.structures.camera import check_intrinsics
from pose.utils.archives import load_array

FORMS = "fx,fy,cx,cy, or a file with the 3x3 matrix: .npy, .json or text"


def read_intrinsics(text: str) -> NDArray[np.float64]:
    """Return the camera matrix (3, 3) in px from the text `fx,fy,cx,cy`, or from a file with the matrix."""
    path = Path(text)
    try:
        values = _from_file(path) if path.is_file() else [float(part) for part in text.split(",")]
        numbers = np.asarray(values, np.float64)
    except (PoseError, ValueError, TypeError, OSError, RecursionError) as error:
        raise UsageError(f"intrinsics: cannot read {text!r}; allowed: {FORMS}") from error
    if numbers.shape == (4,):
        fx, fy, cx, cy = numbers
        numbers = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    try:
        check_intrinsics(numbers)
    except ValueError as error:
        raise UsageError(f"{error}; allowed: {FORMS}") from error
    return numbers


def _from_file(path: Path) -> ArrayLike:
    if path.suffix == ".npy":
        return load_array(path)
    if path.suffix == ".json":
        result: ArrayLike = json.loads(path.read_text(encoding="utf-8-sig"))
        return result
    return np.loadtxt(
        path, encoding="utf-8-sig", delimiter="," if "," in path.read_text(encoding="utf-8-sig") else None
    )
