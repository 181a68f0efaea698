"""Results on disk while a run lasts, to be read again in the same order."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from pose.files.records import ResultRecords
from pose.files.writer import close_scratch
from pose.skeletons import Skeleton
from pose.system.whole_file import file_errors
from pose.types import FrameResult


class ResultSpool:
    """Keeps results in a nameless temporary file, so that memory does not grow and nothing is left afterwards."""

    def __init__(self, folder: Path, skeleton: Skeleton) -> None:
        self._folder = folder
        self._records = ResultRecords(len(skeleton))
        self._frames = 0
        with file_errors(folder):
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - lives as long as the spool

    def write(self, result: FrameResult) -> None:
        """Add the next frame. Raises PoseError when the disk cannot take it."""
        with file_errors(self._folder):
            self._file.write(self._records.to_bytes(result))
        self._frames += 1

    def __iter__(self) -> Iterator[FrameResult]:
        """Everything that was written, oldest first."""
        with file_errors(self._folder):
            self._file.seek(0)
        for _ in range(self._frames):
            yield self._records.read(self._file)

    def close(self) -> None:
        close_scratch(self._file)
