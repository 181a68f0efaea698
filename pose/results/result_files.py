"""The files of one result, which get their final names together."""

from collections.abc import Callable, Mapping
from pathlib import Path

from pose.errors import PoseError
from pose.results.json import JsonWriter
from pose.results.npz import NpzWriter
from pose.results.run_info import RunInfo
from pose.results.writer import ResultWriter, WriterContext
from pose.structures.types import FrameResult
from pose.utils.whole_file import WholeFile, file_errors

# Format name -> writer of `poses.<name>`.
WRITERS: dict[str, Callable[[Path, RunInfo], ResultWriter]] = {"json": JsonWriter, "npz": NpzWriter}


class ResultFiles(WriterContext):
    """The files of one result. Implements `ResultWriter`.

    All files are completed under temporary names before the first one is renamed. If one of them cannot be written or
    completed, all are deleted, so that no file of a result is without the others.
    """

    def __init__(self, paths: Mapping[str, Path], info: RunInfo) -> None:
        """Open the files; PoseError if a file cannot be created."""
        self._writers: list[ResultWriter] = []
        self._texts: list[tuple[WholeFile, str]] = []
        try:
            for name, path in paths.items():
                if name in WRITERS:
                    self._writers.append(WRITERS[name](path, info))
        except BaseException:
            self.abort()
            raise

    def add_text(self, path: Path, text: str) -> None:
        """Add a small text file to the result. It is written when the other files are completed."""
        self._texts.append((WholeFile(path), text))

    def write(self, result: FrameResult) -> None:
        """Append the result of a frame to all files; if that fails, all are deleted, and a PoseError raised."""
        try:
            for writer in self._writers:
                writer.write(result)
        except PoseError:
            self.abort()
            raise

    def finish(self, complete: bool = True) -> None:
        """Complete all files under temporary names, or as interrupted; after an error, all are deleted."""
        try:
            for writer in self._writers:
                writer.finish(complete)
            for file, text in self._texts:
                with file_errors(file.target):
                    file.path.write_bytes(text.encode())
        except BaseException:
            self.abort()
            raise

    def commit(self) -> None:
        """Give all finished files their final names."""
        try:
            for writer in self._writers:
                writer.commit()
            for file, _ in self._texts:
                file.commit()
        finally:
            self.abort()  # without effect on renamed files

    def abort(self) -> None:
        """Delete all files that do not have their final names yet."""
        for writer in self._writers:
            writer.abort()
        for file, _ in self._texts:
            file.discard()
        self._writers, self._texts = [], []
