"""Temporary storage of results on disk during a run."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from pose.results.records import ResultRecords
from pose.results.writer import close_scratch
from pose.structures.skeletons import Skeleton
from pose.structures.types import FrameResult
from pose.utils.whole_file import file_errors


class ResultSpool:
    """An unnamed temporary file of frame results, which disappears when it is closed or the process ends."""

    def __init__(self, folder: Path, skeleton: Skeleton) -> None:
        self._folder = folder
        self._records = ResultRecords(len(skeleton))
        self._frames = 0
        with file_errors(folder):
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - open as long as the spool

    def write(self, result: FrameResult) -> None:
        """Append the result of a frame to the temporary file.

        Raises:
            PoseError: If the file cannot be written, for example because the disk is full.
        """
        with file_errors(self._folder):
            self._file.write(self._records.to_bytes(result))
        self._frames += 1

    def __iter__(self) -> Iterator[FrameResult]:
        """Yield all frames in order. Several iterations can take place at the same time."""
        place = 0
        for _ in range(self._frames):
            with file_errors(self._folder):
                self._file.seek(place)
                result = self._records.read(self._file)
                place = self._file.tell()
            yield result

    def close(self) -> None:
        """Delete the temporary file."""
        close_scratch(self._file)
