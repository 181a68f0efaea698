"""Results on disk while a run lasts, to be read again in the same order."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pose.files.writer import close_scratch
from pose.skeletons import H36M17, Skeleton
from pose.system.whole_file import file_errors
from pose.types import FrameResult, People, Poses3D

_FRAME = np.dtype([("index", "<i8"), ("time", "<f8"), ("people", "<i8")])


def _person(joints: int) -> np.dtype[np.void]:
    j3 = len(H36M17)
    return np.dtype(
        [
            ("id", "<i8"),
            ("box", "<f4", 4),
            ("box_score", "<f4"),
            ("keypoints", "<f4", (joints, 2)),
            ("scores", "<f4", joints),
            ("joints", "<f4", (j3, 3)),
            ("root", "<f4", 3),
            ("sigma", "<f4", j3),
            ("exchanged", "?", 2),
        ]
    )


class ResultSpool:
    """Keeps results in a nameless temporary file, so that memory does not grow and nothing is left afterwards."""

    def __init__(self, folder: Path, skeleton: Skeleton) -> None:
        self._folder = folder
        self._row = _person(len(skeleton))
        with file_errors(folder):
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - lives as long as the spool

    def write(self, result: FrameResult) -> None:
        """Add the next frame. Raises PoseError when the disk cannot take it."""
        people, poses = result.people, result.poses
        head = np.array([(result.index, result.time, len(people))], _FRAME)
        rows = np.empty(len(people), self._row)
        for name, values in (
            ("id", people.ids),
            ("box", people.boxes),
            ("box_score", people.box_scores),
            ("keypoints", people.keypoints),
            ("scores", people.scores),
            ("joints", poses.joints),
            ("root", poses.root),
            ("sigma", poses.sigma),
            ("exchanged", poses.exchanged),
        ):
            rows[name] = values
        with file_errors(self._folder):
            self._file.write(head.tobytes() + rows.tobytes())

    def __iter__(self) -> Iterator[FrameResult]:
        """Everything that was written, oldest first."""
        with file_errors(self._folder):
            self._file.seek(0)
        while data := self._file.read(_FRAME.itemsize):
            head = np.frombuffer(data, _FRAME)[0]
            rows = np.frombuffer(self._file.read(int(head["people"]) * self._row.itemsize), self._row)
            people = People(
                int(head["index"]),
                float(head["time"]),
                rows["id"],
                rows["box"],
                rows["box_score"],
                rows["keypoints"],
                rows["scores"],
            )
            yield FrameResult(people, Poses3D(rows["joints"], rows["root"], rows["sigma"], rows["exchanged"]))

    def close(self) -> None:
        close_scratch(self._file)
