"""Lossless binary records of frames, for temporary files that only this program reads."""

from typing import IO

import numpy as np

from pose.structures.face_points import POINTS as FACE_POINTS
from pose.structures.face_points import Faces
from pose.structures.hand_points import POINTS, Hands
from pose.structures.skeletons import H36M17
from pose.structures.types import Background, FrameResult, People, Poses3D

_FRAME = np.dtype(
    [
        ("index", "<i8"),
        ("time", "<f8"),
        ("people", "<i8"),
        ("untracked", "<i8"),
        ("cut", "?"),
        ("measured", "?"),
        ("hands", "?"),
        ("faces", "?"),
    ]
)
_BACKGROUND = np.dtype(
    [
        ("links", "<f8", (2, 6)), ("features", "<i8"), ("inliers", "<f8"), ("shift", "<f8"), ("parallax", "<f8"),
        ("focal_ratio", "<f8"),
        ("focal_sigma", "<f8"),
    ]
)  # fmt: skip
_HANDS = np.dtype(
    [("points", "<f4", (2, POINTS, 2)), ("scores", "<f4", (2, POINTS)), ("shapes", "<f4", (2, POINTS, 3))]
)
_FACES = np.dtype([("points", "<f4", (FACE_POINTS, 3)), ("scores", "<f4")])
_COUNT = np.dtype("<i8")
MAX_PEOPLE = 100_000  # maximum in a frame; a record with more is damaged


class RecordError(ValueError):
    """An error for damaged or truncated records."""


class PeopleRecords:
    """Converter between the `People` of a frame and binary records, for a fixed number `joints` of 2D keypoints."""

    def __init__(self, joints: int) -> None:
        self.row = np.dtype(
            [
                ("ids", "<i8"),
                ("boxes", "<f4", 4),
                ("box_scores", "<f4"),
                ("keypoints", "<f4", (joints, 2)),
                ("scores", "<f4", joints),
            ]
        )

    def to_bytes(self, people: People) -> bytes:
        """Serialise the people of one frame."""
        background = people.background
        count, hands, faces = len(people), people.hands, people.faces
        measured = background is not None, hands is not None, faces is not None
        values = (people.index, people.time, count, people.untracked, people.cut, *measured)
        head = np.array([values], _FRAME).tobytes()
        if background is not None:
            background_row = np.zeros(1, _BACKGROUND)
            for name in _names(_BACKGROUND):
                background_row[name] = getattr(background, name)
            head += background_row.tobytes()
        parts = [head, _rows(people, count, self.row)]
        if hands is not None:
            parts.append(_rows(hands, count, _HANDS))
        if faces is not None:
            parts.append(_rows(faces, count, _FACES))
        return b"".join(parts)

    def read(self, file: IO[bytes]) -> People:
        """Read the people of the next frame.

        Raises:
            RecordError: If the record is damaged or truncated.
        """
        head = np.frombuffer(_read_exactly(file, _FRAME.itemsize), _FRAME)[0]
        background = None
        if head["measured"]:
            background_row = np.frombuffer(_read_exactly(file, _BACKGROUND.itemsize), _BACKGROUND)[0]
            links, features, *numbers = (background_row[name] for name in _names(_BACKGROUND))
            background = Background(links.copy(), int(features), *map(float, numbers))
        rows = _read_rows(file, int(head["people"]), self.row)
        hands = None
        if head["hands"]:
            hand_rows = _read_rows(file, int(head["people"]), _HANDS)
            hands = Hands(**{name: hand_rows[name].copy() for name in _names(_HANDS)})
        faces = None
        if head["faces"]:
            face_rows = _read_rows(file, int(head["people"]), _FACES)
            faces = Faces(**{name: face_rows[name].copy() for name in _names(_FACES)})
        return People(
            index=int(head["index"]),
            time=float(head["time"]),
            **{name: rows[name].copy() for name in _names(self.row)},
            untracked=int(head["untracked"]),
            cut=bool(head["cut"]),
            background=background,
            hands=hands,
            faces=faces,
        )


class PosesRecords:
    """Converter between `Poses3D` and binary records, for observed poses; `ahead` and `seen_by` are not stored."""

    def __init__(self) -> None:
        j = len(H36M17)
        self.row = np.dtype([("joints", "<f4", (j, 3)), ("root", "<f4", 3), ("sigma", "<f4", j), ("swapped", "?", 2)])

    def to_bytes(self, poses: Poses3D) -> bytes:
        """Serialise the poses of one frame."""
        return np.array([len(poses)], _COUNT).tobytes() + _rows(poses, len(poses), self.row)

    def read(self, file: IO[bytes]) -> Poses3D:
        """Read the poses of the next frame.

        Raises:
            RecordError: If the record is damaged or truncated.
        """
        count = np.frombuffer(_read_exactly(file, _COUNT.itemsize), _COUNT)[0]
        rows = _read_rows(file, int(count), self.row)
        return Poses3D(**{name: rows[name].copy() for name in _names(self.row)})


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


def _rows(values: People | Poses3D | Hands | Faces, count: int, row: "np.dtype[np.void]") -> bytes:
    rows = np.empty(count, row)
    for name in _names(row):
        rows[name] = getattr(values, name)
    return rows.tobytes()


def _read_rows(file: IO[bytes], count: int, row: "np.dtype[np.void]") -> "np.ndarray[tuple[int], np.dtype[np.void]]":
    if not 0 <= count <= MAX_PEOPLE:
        raise RecordError(f"invalid number of people in a frame: {count}")
    return np.frombuffer(_read_exactly(file, count * row.itemsize), row)


def _read_exactly(file: IO[bytes], count: int) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise RecordError(f"expected {count} bytes, got {len(data)}")
    return data
