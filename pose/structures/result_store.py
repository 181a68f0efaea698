"""All results of a run in camera coordinates: frames in their order, and the rows of each track by an index.

Cache entries hold the same rows (`pose.results.cache`).

Memory does not grow with the length of the run beyond a limit (`pose.utils.row_file`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import IO, Any

import numpy as np

from pose.structures.columns import ColumnSet, arrays_of, row_type, rows_of
from pose.structures.face_points import Faces
from pose.structures.hand_points import Hands
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, Background, FrameResult, People, Poses3D
from pose.utils.row_file import RowFile, Rows

_BACKGROUND = [
    (entry.name, *{"links": ("<f8", (2, 6)), "features": ("<i8", ())}.get(entry.name, ("<f8", ())))
    for entry in fields(Background)
]
FRAME: "np.dtype[Any]" = np.dtype(
    [
        ("index", "<i8"), ("time", "<f8"), ("people", "<i8"), ("untracked", "<i8"), ("cut", "?"), ("sampled", "?"),
        ("measured", "?"), ("hands", "?"), ("faces", "?"), ("segments", "<i8"), ("background", _BACKGROUND),
    ]
)  # fmt: skip
_STORED: "np.dtype[Any]" = np.dtype([("frame", FRAME), ("first", "<i8", 5)])  # numbers of the first rows of the parts
_SEGMENT: "np.dtype[Any]" = np.dtype([("ends", "<f4", (2, 2))])
_ALL_FRAMES = 0  # key of the frames, and of the line segments


def frame_of(people: People) -> Rows:
    """Return what describes a frame as a whole as one row (1,) of the type `FRAME`."""
    frame = np.zeros(1, FRAME)
    frame["index"], frame["time"], frame["people"] = people.index, people.time, len(people)
    frame["untracked"], frame["cut"], frame["sampled"] = people.untracked, people.cut, people.sampled
    frame["hands"], frame["faces"] = people.hands is not None, people.faces is not None
    frame["segments"] = 0 if people.segments is None else len(people.segments)
    if people.background is not None:
        frame["measured"] = True
        for name, *_ in _BACKGROUND:
            frame["background"][name] = getattr(people.background, name)
    return frame


def people_of(
    frame: np.void, columns: dict[str, Any], hands: Hands | None, faces: Faces | None, segments: F32 | None = None
) -> People:
    """Return the people of a frame from its row of the type `FRAME` and their columns."""
    background = None
    if frame["measured"]:
        links, features, *numbers = (frame["background"][name] for name, *_ in _BACKGROUND)
        background = Background(links.copy(), int(features), *map(float, numbers))
    return People(
        int(frame["index"]), float(frame["time"]), **columns, untracked=int(frame["untracked"]),
        cut=bool(frame["cut"]), sampled=bool(frame["sampled"]), background=background, segments=segments, hands=hands,
        faces=faces,
    )  # fmt: skip


Place = tuple[IO[bytes], int, int]  # open file, position of the first row, number of rows


def part_types(skeleton: Skeleton) -> "dict[str, np.dtype[Any]]":
    """Return the type of a row of each part of stored results."""
    people = np.dtype([("time", "<f8"), ("people", row_type(People, len(skeleton)))])
    kinds = {"poses": row_type(Poses3D), "hands": row_type(Hands), "faces": row_type(Faces)}
    return {"frames": _STORED, "people": people, **kinds, "segments": _SEGMENT}


class ResultStore:
    """Results of the frames of a run; can be iterated repeatedly, also at the same time."""

    def __init__(
        self,
        folder: Path | None,
        skeleton: Skeleton,
        memory: int | None = None,
        existing: Mapping[str, Place] | None = None,
    ) -> None:
        """Create an empty store, in unnamed files in `folder` or the system's temporary folder.

        `memory` is the number of bytes of each part that stay in memory. `existing` are open files with the parts of
        stored results, to read only; missing parts are empty.
        """
        self.skeleton, there = skeleton, existing or {}
        self.parts = {
            name: RowFile(kind, folder, memory, there.get(name)) for name, kind in part_types(skeleton).items()
        }
        self._frames, *parts = self.parts.values()
        self._people, self._poses, self._hands, self._faces, self._segments = parts
        self._parts = parts

    def write(self, result: FrameResult) -> None:
        """Append the result of a frame; PoseError if it cannot be stored, for example because the disk is full."""
        people, ids = result.people, result.people.ids.tolist()
        frame = np.zeros(1, _STORED)
        frame["frame"], frame["first"] = frame_of(people), [len(part) for part in self._parts]
        seen = np.zeros(len(people), self._people.kind)
        seen["time"], seen["people"] = people.time, rows_of(people, len(self.skeleton))
        self._people.append(ids, seen)
        for part, values in ((self._poses, result.poses), (self._hands, people.hands), (self._faces, people.faces)):
            if values is not None:
                part.append(ids, rows_of(values))
        if people.segments is not None:
            ends = np.zeros(len(people.segments), _SEGMENT)
            ends["ends"] = people.segments
            self._segments.append(_ALL_FRAMES, ends)
        self._frames.append(_ALL_FRAMES, frame)

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[FrameResult]:
        return (self[position] for position in range(len(self)))

    def __getitem__(self, position: int) -> FrameResult:
        """Return the result of the frame at `position`, from 0 on."""
        (stored,) = self._frames.part(position, 1)
        rows = self._poses.part(int(stored["first"][1]), int(stored["frame"]["people"]))
        return FrameResult(self._people_of(stored), Poses3D(**arrays_of(Poses3D, rows)))

    def people(self) -> Iterator[People]:
        """Yield the people of all frames in 2D."""
        return map(self.people_at, range(len(self)))

    def people_at(self, position: int) -> People:
        """Return the people of the frame at `position`, from 0 on, in 2D."""
        return self._people_of(self._frames.part(position, 1)[0])

    def _people_of(self, stored: np.void) -> People:
        frame, count = stored["frame"], int(stored["frame"]["people"])

        def columns(part: RowFile, place: int, kind: type[ColumnSet]) -> dict[str, Any]:
            rows = part.part(int(stored["first"][place]), count)
            return arrays_of(kind, rows["people"] if part is self._people else rows)

        hands = Hands(**columns(self._hands, 2, Hands)) if frame["hands"] else None
        faces = Faces(**columns(self._faces, 3, Faces)) if frame["faces"] else None
        found = (
            self._segments.part(int(stored["first"][4]), int(frame["segments"]))["ends"] if frame["segments"] else None
        )
        return people_of(frame, columns(self._people, 0, People), hands, faces, found)

    @property
    def tracks(self) -> list[int]:
        """Ids of all people, in the order in which they appear."""
        return self._people.keys

    def count(self, track: int) -> int:
        """Return the number of frames with a track."""
        return self._people.count(track)

    def portions(self, track: int) -> Iterator[tuple[Rows, Rows, Rows]]:
        """Yield times, people and poses of a track, rows of `row_type`, some thousand frames at a time."""
        for people, poses in zip(self._people.portions(track), self._poses.portions(track), strict=True):
            yield people["time"], people["people"], poses

    def close(self) -> None:
        """Delete the results."""
        for part in (self._frames, *self._parts):
            part.close()
