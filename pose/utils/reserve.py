"""Disk space that is reserved, so that a task can still write its last files on a full disk."""

import errno
import os
from contextlib import suppress
from pathlib import Path

STEP_BYTES = 1 << 18  # minimum amount by which the file grows


class Reserve:
    """A placeholder file that occupies disk space until `release` frees it."""

    def __init__(self, path: Path) -> None:
        """Create the placeholder file and reserve 256 KiB; OSError if there is not enough disk space."""
        self._path = path
        self._size = 0
        self._file = path.open("wb", buffering=0)
        try:
            self.grow_to(STEP_BYTES)
        except OSError:
            self.release()
            raise

    def grow_to(self, size: int) -> None:
        """Reserve at least `size` bytes in total; OSError if there is not enough disk space."""
        while self._size < size:
            step = max(STEP_BYTES, self._size // 4)
            try:
                self._grow(step)
            except OSError as error:
                if error.errno != errno.EFBIG:  # a limit per file (`ulimit -f`), not of the disk
                    raise
            self._size += step

    def _grow(self, step: int) -> None:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._file.fileno(), self._size, step)
        else:
            self._file.write(bytes(step))

    def release(self) -> None:
        """Free the space. A second call has no effect."""
        self._file.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
