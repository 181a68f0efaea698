"""Validation of cache entries before use. The checks raise ValueError or TypeError for invalid content."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from pose.results.cache.store import Entry
from pose.structures.result_store import Place, ResultStore, part_types
from pose.structures.skeletons import Skeleton
from pose.utils.json_types import check_type
from pose.utils.row_file import Rows

MAX_ABS = 1e7  # largest valid absolute value, in px, m or mm


class PeopleMetadata(TypedDict):
    """Metadata of a cache entry of people in 2D; `cut_short` says that the end of the video is missing."""

    rows: list[int]  # number of rows of each part
    name: str  # name of the source
    problems: list[str]  # warnings about the source
    cut_short: str | None  # message that the end of the video is missing; None if it is complete


def entry_parts(entry: Entry, names: Sequence[str], skeleton: Skeleton) -> dict[str, Place]:
    """Return the parts of results that an entry contains."""
    counts: Any = entry.metadata.get("rows")
    place, parts = entry.file.tell(), dict[str, Place]()
    check_type(counts, list[int])
    if len(counts) != len(names) or min(counts) < 0:
        raise ValueError("expected the number of rows of each part")
    for name, count in zip(names, counts, strict=True):
        parts[name] = entry.file, place, count
        place += count * part_types(skeleton)[name].itemsize
    if place != entry.end:
        raise ValueError("another size than its rows")
    return parts


def check_people(stored: ResultStore, metadata: Mapping[str, Any]) -> None:
    """Validate stored people in 2D."""
    check_type(metadata, PeopleMetadata)
    frames = np.concatenate([np.zeros(0, stored.parts["frames"].kind), *stored.parts["frames"].blocks()])
    frame, counts = frames["frame"], frames["frame"]["people"]
    if (frame["index"] != np.arange(len(frames))).any() or not (np.diff(frame["time"], append=np.inf) > 0).all():
        raise ValueError("frames are not in order")
    present = np.stack([counts, counts, counts * frame["hands"], counts * frame["faces"], frame["segments"]], axis=1)
    ends = np.cumsum(present, axis=0)
    if (present < 0).any() or (frames["first"] != ends - present).any():
        raise ValueError("rows do not match the frames")
    totals = ends[-1] if len(frames) else np.zeros(5, np.int64)
    if [len(stored.parts[name]) for name in ("people", "hands", "faces", "segments")] != totals[[0, 2, 3, 4]].tolist():
        raise ValueError("frames are missing")
    ids = [np.zeros(0, np.int64)]
    for rows in stored.parts["people"].blocks():
        ids.append(rows["people"]["ids"])
        check_numbers(rows["people"])
    of_rows, all_ids = np.repeat(np.arange(len(frames)), counts), np.concatenate(ids)
    order = np.lexsort((all_ids, of_rows))
    if ((np.diff(all_ids[order]) == 0) & (np.diff(of_rows[order]) == 0)).any() or (all_ids < 0).any():
        raise ValueError("invalid person ids")
    for name in ("hands", "faces", "segments"):
        for rows in stored.parts[name].blocks():
            check_numbers(rows)


def check_poses(stored: ResultStore) -> None:
    """Validate stored 3D poses of the people."""
    if len(stored.parts["poses"]) != len(stored.parts["people"]):
        raise ValueError("poses do not match the people")
    for rows in stored.parts["poses"].blocks():
        check_numbers(rows)


def check_numbers(rows: Rows) -> None:
    """Check that the floating-point numbers of rows are moderate, or unknown."""
    for name in rows.dtype.names or ():
        values = rows[name]
        if values.dtype.kind == "f" and (np.abs(values[np.isfinite(values)]) > MAX_ABS).any():
            raise ValueError("numbers are out of range")
