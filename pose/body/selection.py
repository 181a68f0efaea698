"""Checks of a result before export, and reading of its rows in portions."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pose.body.timeline import thinned
from pose.errors import UsageError
from pose.results import Recording
from pose.structures.refine import lengths_of
from pose.structures.types import F64, I64
from pose.utils.archives import release
from pose.world.camera_motion.verdict import UNKNOWN
from pose.world.given import check_heights
from pose.world.height import scale_to, stature

CHUNK = 2048  # frames in memory at a time
SAMPLE = 4096  # rows from which medians of a whole result are computed


def without_world(table: Recording) -> str:
    """Return the reason why a result cannot be exported in world coordinates; empty if it can."""
    motion = None if table.run is None or table.world_info is not None else table.run.motion
    if motion is None or not (motion.motion.moves or motion.motion.kind == UNKNOWN):
        return ""
    return f"the camera's motion is {motion.motion.kind} and not compensated, so the result has no world"


def scale_factors(table: Recording, heights: Mapping[int | None, float]) -> dict[int, float]:
    """Return factors to given body heights by person id (None: all others); UsageError for an unknown id."""
    if not heights:
        return {}
    check_heights(heights)
    order = np.argsort(table.id, kind="stable")
    people, starts = np.unique(table.id[order], return_index=True)
    for number in heights:
        if number is not None and number not in people:
            raise UsageError(f"height: no person has the id {number}; ids: {some_ids(people)}")
    heights_before = {} if table.world_info is None else table.world_info.heights
    factors = {}
    for person, rows in zip(people.tolist(), np.split(order, starts[1:]), strict=True):
        wanted = heights.get(person, heights.get(None))
        rows = thinned(rows[finite_rows(table, rows)], SAMPLE)
        if wanted is not None and len(rows):
            lifted_height = stature(lengths_of(table.joints3d[rows], table.sigma[rows]))
            factors[person] = scale_to(wanted, heights_before.get(person, (lifted_height, 0.0))[0])
    return factors


def some_ids(people: Sequence[int] | I64) -> str:
    """Return the first 20 ids as text, for an error message."""
    return ", ".join(map(str, people[:20])) + (", ..." if len(people) > 20 else "") or "nobody"


def finite_rows(table: Recording, rows: I64) -> NDArray[np.bool_]:
    """Return a mask (N,) of the table rows whose 3D pose is finite."""
    finite = np.zeros(len(rows), bool)
    for start in range(0, len(rows), CHUNK):
        at = rows[start : start + CHUNK]
        joints, root = table.joints3d[at], table.root[at]
        finite[start : start + CHUNK] = np.isfinite(joints).all(axis=(1, 2)) & np.isfinite(root).all(axis=1)
        release_pages(table)
    return finite


def release_pages(table: Recording) -> None:
    """Release the memory of memory-mapped arrays. Their data are read from disk again when needed."""
    release(table.keypoints, table.scores, table.joints3d, table.root, table.sigma, table.box)


def time_range(times: F64) -> str:
    """Return the first and last time stamp as text, for an error message."""
    return f"{times[0]:g} to {times[-1]:g} s"
