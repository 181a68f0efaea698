"""Text files with a row of point coordinates per frame."""

import io

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError
from pose.utils.shown import in_brief


def parse_point_rows(text: str, count: int, kind: str, source: str) -> NDArray[np.float64]:
    """Parse rows of 3 `count` numbers, separated by commas or spaces, as points (T, count, 3).

    Other rows are a PoseError, whose message names the `kind` of points (a plural) and the file, `source`.
    """
    if not text.strip():
        raise PoseError(f"{source}: the file is empty")
    try:
        rows = np.loadtxt(io.StringIO(text.replace(",", " ")), ndmin=2)
    except ValueError as error:
        raise PoseError(f"{source}: expected rows of numbers ({in_brief(error)})") from error
    if rows.shape[1] != 3 * count:
        raise PoseError(f"{source}: {rows.shape[1]} numbers per row; expected {3 * count} for {count} {kind}")
    return np.asarray(rows.reshape(len(rows), count, 3), np.float64)
