"""Writer of `poses.json`, the results of a run as text.

The schema is `poses.schema.json` beside this module; docs/reference/outputs.md describes it. The file is streamed: the
header, one line per frame, and the tail. Numbers are rounded: pixels to 0.01, scores to 0.001, metres to 0.0001,
millimetres to 0.1. Writing an hour of one person takes 10 s of processor time.
"""

import json
import math
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import compress, repeat
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from pose.errors import PoseError
from pose.results.run_info import RunInfo
from pose.results.writer import PartFile, WriterContext
from pose.structures.columns import columns_of
from pose.structures.hand_points import SIDES, sized_to_body
from pose.structures.types import CameraView, FrameResult, People, Placed, Poses3D

FORMAT_NAME = "pose-run"
FORMAT_VERSION = 2
# Order of the members of people in the world in version 2, which differs from that of the columns. Others follow.
_PLACE = {name: place for place, name in enumerate(("world", "contacts", "root_sigma", "moved", "filled"))}
SCHEMA_PATH = Path(__file__).with_name("poses.schema.json")


class JsonWriter(WriterContext):
    """A `ResultWriter` of `poses.json`, a valid document after every write, marked as incomplete until `close`."""

    def __init__(self, path: Path, info: RunInfo, part: Path | None = None, spare: int = 0) -> None:
        """Open a hidden file, or `part`, and write the header with `spare` bytes by which `write_head` may grow it."""
        self._frames = 0
        self._doubtful = frozenset(info.doubtful)
        head = _head(info)
        self._head_size = len(head) + spare
        self._part = PartFile(path, part)
        self._end = 0  # byte after the last complete frame, or after the header
        self._append(f'{head.ljust(self._head_size)},\n"frames": [')

    def write_head(self, info: RunInfo) -> None:
        """Replace the metadata of the run; ValueError if they need more than the reserved `spare` bytes."""
        head = _head(info)
        if len(head) > self._head_size:
            raise ValueError(f"the header has {len(head)} bytes; {self._head_size} are reserved")
        self._part.overwrite(0, head.ljust(self._head_size).encode())

    def write(self, result: FrameResult) -> None:
        """Append the result of a frame; PoseError if that fails, as on a full disk."""
        frame: dict[str, object] = {"index": result.index, "time": round(result.time, 6)}
        if result.view is not None:
            frame["camera"] = _view(result.view)
        frame["people"] = people_json(result, self._doubtful)
        self._append(("\n" if self._frames == 0 else ",\n") + compact_json(frame))
        self._frames += 1

    def finish(self, complete: bool = True) -> None:
        """Complete the file under its temporary name; `complete=False` marks the run as interrupted.

        After an error the file stays a valid document, marked as incomplete.
        """
        if self._part.closed:
            return
        try:
            self._part.write_and_truncate(self._end, _tail(complete))
        except PoseError:
            self._restore()
            raise

    def commit(self) -> None:
        """Give the file its final name. This has no effect after `abort` or an earlier `commit`."""
        if not self._part.closed:
            self._part.commit()

    def close(self, complete: bool = True) -> None:
        """Complete the file, and give it its final name; `complete=False` marks the run as interrupted.

        If the disk is full, the file gets its final name but stays marked as incomplete.

        Raises:
            PoseError: If the file cannot be completed.
        """
        try:
            self.finish(complete)
        except PoseError:
            self.commit()
            raise
        self.commit()

    def abort(self) -> None:
        """Delete the temporary file. This has no effect after `commit` or an earlier `abort`."""
        if not self._part.closed:
            self._part.discard()

    def _append(self, text: str) -> None:
        data = text.encode()
        try:
            self._part.write_and_truncate(self._end, data + _tail(complete=False))
        except PoseError:
            self._restore()
            raise
        self._end += len(data)

    def _restore(self) -> None:
        """Write the end of the document again after a failed write. Its disk space is already allocated."""
        with suppress(PoseError):
            self._part.write_and_truncate(self._end, _tail(complete=False))


def _head(info: RunInfo) -> str:
    """Return the header as ASCII text without the closing brace."""
    return json.dumps({"format": FORMAT_NAME, "version": FORMAT_VERSION, **info.to_dict()}, allow_nan=False)[:-1]


def _tail(complete: bool) -> bytes:
    return b'\n],\n"complete": %s}\n' % (b"true" if complete else b"false")


def repair_json(path: Path) -> int:
    """Make a document valid whose writer was killed, possibly during a write; return its number of frames.

    It stays marked as incomplete. A document without frames is not changed. Errors of files are OSErrors.
    """
    place = end = frames = 0
    with path.open("r+b") as file:
        for line in file:
            if line.startswith(b'{"index":') and line.endswith(b"\n"):
                end, frames = place + len(line.rstrip(b",\n")), frames + 1
            place += len(line)
        if end:
            file.seek(end)
            file.write(_tail(complete=False))
            file.truncate()
    return frames


def read_head(path: Path) -> RunInfo:
    """Read the metadata of a complete or incomplete document.

    Raises:
        OSError: If the file cannot be read.
        KeyError, TypeError, ValueError: If the metadata are invalid.
    """
    with path.open("rb") as file:
        return RunInfo.from_json(json.loads(file.readline().rstrip(b",\n") + b"}"))


def compact_json(value: object) -> str:
    """Format plain values as JSON on one line, without spaces between the elements."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def people_json(result: FrameResult, doubtful: Collection[int] = ()) -> list[dict[str, object]]:
    """Convert the people of a frame to objects of `poses.json`, in the same order."""
    if len(result.people) == 0:
        return []
    found: list[dict[str, object]] = [{} for _ in result.people.ids]
    _add_members(found, result.people)
    _add_members(found, result.poses)
    for person, hands in zip(found, _hands(result), strict=False):
        if hands:
            person["hands"] = hands
    if result.placed is not None:
        _add_members(found, result.placed)
    else:
        for person in found:
            if person["id"] in doubtful:
                person["doubtful"] = True
    return found


def _add_members(people: list[dict[str, object]], rows: People | Poses3D | Placed) -> None:
    """Add the columns of the people to their objects."""
    for one in sorted(columns_of(type(rows)), key=lambda one: _PLACE.get(one.member, math.inf)):
        if not one.member:
            continue
        values = getattr(rows, one.attribute)
        if one.name == "keypoints":
            assert isinstance(rows, People)
            plain = _with_scores(values, rows.scores)
        elif one.labels:
            plain = [list(compress(one.labels, row)) for row in values.tolist()]
        else:
            plain = values.tolist() if one.decimals is None else _rounded(values, one.decimals)
        shown = values.reshape(len(values), -1).any(axis=1) if one.sparse else repeat(True)
        for person, value, written in zip(people, plain, shown, strict=False):
            if written:
                person[one.member] = value


def _rounded(values: ArrayLike, decimals: int) -> list[object]:
    """Round to `decimals` places; NaN and infinity become None."""
    rounded = np.round(np.asarray(values, np.float64), decimals) + 0.0  # adding 0.0 turns -0.0 into 0.0
    known = np.isfinite(rounded)
    if not known.all():
        rounded = rounded.astype(object)
        rounded[~known] = None
    plain: list[object] = rounded.tolist()
    return plain


def _with_scores(points: ArrayLike, scores: ArrayLike) -> list[object]:
    """Combine points (..., K, 2) px and scores (..., K) to (..., K, 3): x, y and score of each point."""
    positions, rounded_scores = np.round(np.asarray(points, np.float64), 2), np.round(np.asarray(scores, np.float64), 3)
    return _rounded(np.concatenate([positions, rounded_scores[..., None]], axis=-1), 3)


def _view(view: CameraView) -> dict[str, object]:
    sigma = round(float(view.sigma_degrees), 3) if np.isfinite(view.sigma_degrees) else None
    far = round(float(view.position_sigma), 4) if np.isfinite(view.position_sigma) else None
    place = {} if view.position is None else {"position": _rounded(view.position, 4), "position_sigma": far}
    return {
        "rotation": _rounded(view.rotation, 6), "zoom": round(float(view.zoom), 5), "sigma_degrees": sigma, **place
    }  # fmt: skip


def _hands(result: FrameResult) -> Iterator[dict[str, object]]:
    """Yield the JSON member of the detected hands of each person; yield nothing if hands were not estimated."""
    hands, poses = result.people.hands, result.poses
    if hands is None:
        return
    keypoints, joints = _with_scores(hands.points, hands.scores), sized_to_body(hands, poses.joints, poses.swapped)
    lifted = np.asarray(np.isfinite(joints).all(axis=(2, 3)))
    for row, points in enumerate(keypoints):
        sides: dict[str, object] = {}
        for at, side in enumerate(SIDES):
            hand = {"keypoints": points[at]} if hands.detected[row, at] else {}  # type: ignore[index]
            if lifted[row, at]:
                hand["joints3d"] = _rounded(joints[row, at], 4)
            if hand:
                sides[side] = hand
        yield sides
