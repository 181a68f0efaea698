"""Lossless binary records of frames, for cache entries that only this program reads."""

from typing import IO, Any

import numpy as np

from pose.structures.columns import ColumnSet, arrays_of, row_type, rows_of
from pose.structures.face_points import Faces
from pose.structures.frame_store import FRAME, frame_of, people_of
from pose.structures.hand_points import Hands
from pose.structures.types import People, Poses3D

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
        parts = [frame_of(people).tobytes(), rows_of(people, self._joints).tobytes()]
        return b"".join(parts + [rows_of(part).tobytes() for part in (people.hands, people.faces) if part is not None])

    def read(self, file: IO[bytes]) -> People:
        """Read the people of the next frame."""
        frame = np.frombuffer(_read_exactly(file, FRAME.itemsize), FRAME)[0]
        count = int(frame["people"])
        columns = _read_arrays(file, count, People, self._joints)
        hands = Hands(**_read_arrays(file, count, Hands)) if frame["hands"] else None
        faces = Faces(**_read_arrays(file, count, Faces)) if frame["faces"] else None
        return people_of(frame, columns, hands, faces)


class PosesRecords:
    """Converter between the `Poses3D` of a frame and binary records."""

    def to_bytes(self, poses: Poses3D) -> bytes:
        """Serialise the poses of one frame."""
        return np.array([len(poses)], _COUNT).tobytes() + rows_of(poses).tobytes()

    def read(self, file: IO[bytes]) -> Poses3D:
        """Read the poses of the next frame."""
        count = np.frombuffer(_read_exactly(file, _COUNT.itemsize), _COUNT)[0]
        return Poses3D(**_read_arrays(file, int(count), Poses3D))


def _read_arrays(file: IO[bytes], count: int, kind: type[ColumnSet], joints: int = 0) -> dict[str, Any]:
    """Read `count` rows, and return their columns as arguments of the data class `kind`."""
    if not 0 <= count <= MAX_PEOPLE:
        raise RecordError(f"invalid number of people in a frame: {count}")
    row = row_type(kind, joints)
    return arrays_of(kind, np.frombuffer(_read_exactly(file, count * row.itemsize), row))


def _read_exactly(file: IO[bytes], count: int) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise RecordError(f"expected {count} bytes, got {len(data)}")
    return data
