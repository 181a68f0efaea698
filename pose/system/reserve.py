"""Room on a disk that is kept free for the end of a work: whoever fills the disk meanwhile finds it full sooner."""

import errno
import os
from contextlib import suppress
from pathlib import Path

STEP = 1 << 18  # bytes


class Reserve:
    """A file of nothing, at least as large as was asked for. `release` it when the room is needed."""

    def __init__(self, path: Path) -> None:
        """Raises OSError where there is no room at all."""
        self._path = path
        self._size = 0
        self._file = path.open("wb", buffering=0)
        try:
            self.hold(STEP)
        except OSError:
            self.release()
            raise

    def hold(self, size: int) -> None:
        """Keep `size` bytes free. Raises OSError where they are not there."""
        while self._size < size:
            step = max(STEP, self._size // 4)
            try:
                self._take(step)
            except OSError as error:
                if error.errno != errno.EFBIG:  # a limit of each file (`ulimit -f`), and not of the disk
                    raise
            self._size += step

    def _take(self, step: int) -> None:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._file.fileno(), self._size, step)
        else:
            self._file.write(bytes(step))

    def release(self) -> None:
        """Give the room back. Does nothing a second time."""
        self._file.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
