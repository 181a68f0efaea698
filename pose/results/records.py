"""Lossless binary records of frames, for temporary files and cache entries that only this program reads."""

from dataclasses import fields
from typing import IO

import numpy as np

from pose.structures.columns import ColumnSet, row_type
from pose.structures.face_points import Faces
from pose.structures.hand_points import Hands
from pose.structures.types import Background, FrameResult, People, Poses3D

_FRAME = np.dtype(
    [
        ("index", "<i8"), ("time", "<f8"), ("people", "<i8"), ("untracked", "<i8"), ("cut", "?"), ("measured", "?"),
        ("hands", "?"), ("faces", "?"),
    ]
)  # fmt: skip
_BACKGROUND_TYPES = {"links": ("<f8", (2, 6)), "features": ("<i8", ())}  # all others are numbers
_BACKGROUND = np.dtype([(entry.name, *_BACKGROUND_TYPES.get(entry.name, ("<f8", ()))) for entry in fields(Background)])
_COUNT = np.dtype("<i8")
MAX_PEOPLE = 100_000  # maximum in a frame; a record with more is damaged


class RecordError(ValueError):
    """An error for damaged or truncated records."""


class PeopleRecords:
    """Converter between the `People` of a frame and binary records, for a fixed number `joints` of 2D keypoints."""

    def __init__(self, joints: int) -> None:
        self._joints = joints

    def to_bytes(self, people: People) -> bytes:
        """Serialise the people of one frame."""
        background, hands, faces = people.background, people.hands, people.faces
        measured = background is not None, hands is not None, faces is not None
        values = (people.index, people.time, len(people), people.untracked, people.cut, *measured)
        parts = [np.array([values], _FRAME).tobytes()]
        if background is not None:
            numbers = tuple(getattr(background, name) for name in _names(_BACKGROUND))
            parts.append(np.array([numbers], _BACKGROUND).tobytes())
        parts += [_to_bytes(rows, self._joints) for rows in (people, hands, faces) if rows is not None]
        return b"".join(parts)

    def read(self, file: IO[bytes]) -> People:
        """Read the people of the next frame.

        Raises:
            RecordError: If the record is damaged or truncated.
        """
        head = np.frombuffer(_read_exactly(file, _FRAME.itemsize), _FRAME)[0]
        background, count = None, int(head["people"])
        if head["measured"]:
            row = np.frombuffer(_read_exactly(file, _BACKGROUND.itemsize), _BACKGROUND)[0]
            links, features, *numbers = (row[name] for name in _names(_BACKGROUND))
            background = Background(links.copy(), int(features), *map(float, numbers))
        return People(
            index=int(head["index"]),
            time=float(head["time"]),
            **_read_arrays(file, count, People, self._joints),
            untracked=int(head["untracked"]),
            cut=bool(head["cut"]),
            background=background,
            hands=Hands(**_read_arrays(file, count, Hands)) if head["hands"] else None,
            faces=Faces(**_read_arrays(file, count, Faces)) if head["faces"] else None,
        )


class PosesRecords:
    """Converter between the `Poses3D` of a frame and binary records."""

    def to_bytes(self, poses: Poses3D) -> bytes:
        """Serialise the poses of one frame."""
        return np.array([len(poses)], _COUNT).tobytes() + _to_bytes(poses)

    def read(self, file: IO[bytes]) -> Poses3D:
        """Read the poses of the next frame.

        Raises:
            RecordError: If the record is damaged or truncated.
        """
        count = np.frombuffer(_read_exactly(file, _COUNT.itemsize), _COUNT)[0]
        return Poses3D(**_read_arrays(file, int(count), Poses3D))


class ResultRecords:
    """Converter between `FrameResult` and binary records, for a fixed number `joints` of 2D keypoints.

    World coordinates and camera views are not stored.
    """

    def __init__(self, joints: int) -> None:
        self._people, self._poses = PeopleRecords(joints), PosesRecords()

    def to_bytes(self, result: FrameResult) -> bytes:
        """Serialise the result of one frame."""
        return self._people.to_bytes(result.people) + self._poses.to_bytes(result.poses)

    def read(self, file: IO[bytes]) -> FrameResult:
        """Read the result of the next frame.

        Raises:
            RecordError: If the record is damaged or truncated.
        """
        return FrameResult(self._people.read(file), self._poses.read(file))


def _names(row: "np.dtype[np.void]") -> tuple[str, ...]:
    assert row.names is not None
    return row.names


def _to_bytes(values: ColumnSet, joints: int = 0) -> bytes:
    rows = np.empty(len(values), row_type(type(values), joints))
    for name in _names(rows.dtype):
        rows[name] = getattr(values, name)
    return rows.tobytes()


def _read_arrays(file: IO[bytes], count: int, kind: type[ColumnSet], joints: int = 0) -> dict[str, np.ndarray]:
    """Read `count` rows, and return their columns as arguments of the data class `kind`."""
    if not 0 <= count <= MAX_PEOPLE:
        raise RecordError(f"invalid number of people in a frame: {count}")
    row = row_type(kind, joints)
    rows = np.frombuffer(_read_exactly(file, count * row.itemsize), row)
    return {name: rows[name].copy() for name in _names(row)}


def _read_exactly(file: IO[bytes], count: int) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise RecordError(f"expected {count} bytes, got {len(data)}")
    return data
