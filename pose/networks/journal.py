"""Journal of a run: what its networks found, so that a run that was interrupted continues where it ended.

All other stages are deterministic and cheap. A run that starts again reads the answers of its networks from the journal
until the journal ends, and has the same state and results as a run that was not interrupted.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import IO, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from pose.structures.stages import Detector, Estimator
from pose.structures.types import U8, Boxes, Keypoints2D, Regions
from pose.utils.whole_file import file_errors

Found = TypeVar("Found", Boxes, Keypoints2D)
_NESTED = {"regions": Regions, "next_regions": Regions}


class Journal:
    """Answers of networks in the order of their calls, in a file: first those of the earlier run, then new ones."""

    def __init__(self, path: Path, key: str) -> None:
        """Open a journal, and replace that of another run's `key`; PoseError if it cannot be written."""
        self._path = path
        with file_errors(path):
            path.touch()
            self._file: IO[bytes] = path.open("r+b")
        self._replays = True
        given = np.frombuffer(key.encode(), np.uint8)
        found = self._read()
        if found is None or not np.array_equal(found, given):
            self._end_replay(0)
            self._write(given)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def answers(self, kind: type[Found], compute: Callable[[], list[Found]]) -> list[Found]:
        """Return the answers of the next call: those of the journal, or else computed and added to it."""
        if self._replays:
            begin = self._file.tell()
            found = self._read_call(kind)
            if found is not None:
                return found
            self._end_replay(begin)
        computed = compute()
        self._write(np.array(len(computed)))
        for answer in computed:
            self._write_arrays(answer)
        self._file.flush()
        return computed

    def _read_call(self, kind: type[Found]) -> list[Found] | None:
        count = self._read()
        if count is None or count.shape != () or count.dtype.kind != "i":
            return None
        try:
            return [self._read_arrays(kind) for _ in range(int(count))]
        except (EOFError, ValueError, TypeError):  # the last call of the earlier run
            return None

    def _end_replay(self, position: int) -> None:
        """Continue to write at a position."""
        self._replays = False
        self._file.seek(position)
        self._file.truncate()

    def _read(self) -> NDArray[Any] | None:
        try:
            return np.asarray(np.load(self._file, allow_pickle=False))
        except (EOFError, ValueError, OSError):
            return None

    def _write(self, array: NDArray[Any]) -> None:
        with file_errors(self._path):
            np.save(self._file, array, allow_pickle=False)

    def _write_arrays(self, answer: Any) -> None:
        for entry in fields(answer):
            value = getattr(answer, entry.name)
            if entry.name in _NESTED:
                self._write(np.array(value is not None))
                if value is not None:
                    self._write_arrays(value)
            else:
                self._write(value)

    def _read_arrays(self, kind: Any) -> Any:
        values: dict[str, Any] = {}
        for entry in fields(kind):
            values[entry.name] = value = self._read()
            if value is None:
                raise EOFError
            if entry.name in _NESTED:
                values[entry.name] = self._read_arrays(_NESTED[entry.name]) if value else None
        return kind(**values)


JournalOf = Callable[[], Journal | None]


class JournalledDetector:
    """Detector whose answers are in the journal of the run, if it has one."""

    def __init__(self, detector: Detector, journal: JournalOf) -> None:
        self.name, self._detector, self._journal = detector.name, detector, journal

    def detect(self, images: Sequence[U8]) -> list[Boxes]:
        """Return the boxes of people in each image."""
        journal = self._journal()
        if journal is None:
            return self._detector.detect(images)
        return journal.answers(Boxes, lambda: self._detector.detect(images))


class JournalledEstimator:
    """Estimator whose answers are in the journal of the run, if it has one."""

    def __init__(self, estimator: Estimator, journal: JournalOf) -> None:
        self.name, self.skeleton, self._estimator, self._journal = (
            estimator.name,
            estimator.skeleton,
            estimator,
            journal,
        )

    def regions(self, boxes: Boxes) -> Regions:
        """Return the region of the image to crop for each box."""
        return self._estimator.regions(boxes)

    def estimate(self, images: Sequence[U8], regions: Sequence[Regions]) -> list[Keypoints2D]:
        """Estimate keypoints in every region of every image."""
        journal = self._journal()
        if journal is None:
            return self._estimator.estimate(images, regions)
        return journal.answers(Keypoints2D, lambda: self._estimator.estimate(images, regions))
