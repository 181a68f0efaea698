"""`--intrinsics`: a camera's matrix from the command line or from a file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pose.errors import UsageError

FORMS = "fx,fy,cx,cy, or a file with the 3x3 matrix: .npy, .json or text"


def read_intrinsics(text: str) -> NDArray[np.float64]:
    """(3, 3) px of `fx,fy,cx,cy` or of a file that holds the matrix. Raises UsageError that names what is allowed."""
    path = Path(text)
    try:
        values = _from_file(path) if path.is_file() else [float(part) for part in text.split(",")]
        numbers = np.asarray(values, np.float64)
    except (ValueError, TypeError, OSError) as error:
        raise UsageError(f"intrinsics: cannot read {text!r}; allowed: {FORMS}") from error
    if numbers.shape == (4,):
        fx, fy, cx, cy = numbers
        numbers = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]])
    check_intrinsics(numbers)
    return numbers


def check_intrinsics(matrix: NDArray[np.float64]) -> None:
    """Raises UsageError unless `matrix` is a pinhole camera without skew."""
    if matrix.shape != (3, 3):
        raise UsageError(f"intrinsics: expected a matrix of shape (3, 3), got {matrix.shape}; allowed: {FORMS}")
    focal, rest = matrix[[0, 1], [0, 1]], matrix[[0, 1, 2, 2, 2], [1, 0, 0, 1, 2]]
    if not np.isfinite(matrix).all() or not (focal > 0).all() or not (rest == [0, 0, 0, 0, 1]).all():
        raise UsageError("intrinsics: expected [[fx, 0, cx], [0, fy, cy], [0, 0, 1]] with fx and fy above 0")


def _from_file(path: Path) -> Any:
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    if path.suffix == ".json":
        return json.loads(path.read_text(encoding="utf-8"))
    return np.loadtxt(path, delimiter="," if "," in path.read_text(encoding="utf-8") else None)
