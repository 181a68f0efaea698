"""Resources of this machine or container, memory of this process, and reserved disk space."""

import ctypes
import errno
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

# peak memory of a worker for a 3840 x 2160 video plus 25 % (docs/guides/batch.md)
WORKER_MEGABYTES = 1255
_CGROUP = Path("/sys/fs/cgroup")
_MEMORY = Path("/proc/meminfo")


def available_cores() -> int:
    """Return the number of processors that this process may use, limited by CPU affinity and the container's quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _words(_CGROUP / "cpu.max")
    if len(quota) == 2 and all(word.isdigit() for word in quota):
        allowed = min(allowed, max(1, round(int(quota[0]) / int(quota[1]))))
    return allowed


def available_megabytes() -> float | None:
    """Return the available memory in MiB, limited by the container; None on systems other than Linux."""
    if not _MEMORY.exists():
        return None
    line = next(line for line in _MEMORY.read_text().splitlines() if line.startswith("MemAvailable:"))
    free = int(line.split()[1]) / 1024
    limit, used = _words(_CGROUP / "memory.max"), _words(_CGROUP / "memory.current")
    if limit and used and limit[0].isdigit():
        free = min(free, (int(limit[0]) - int(used[0])) / 2**20)
    return free


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident_megabytes() -> float | None:
    """Return the resident memory of this process in MiB; None on systems other than Linux."""
    return _megabytes("VmRSS")


def peak_megabytes() -> float | None:
    """Return the peak memory of this process since `forget_peak` in MiB; None on systems other than Linux."""
    return _megabytes("VmHWM")


def forget_peak() -> None:
    """Reset the measurement of the peak memory of this process to the current memory, on Linux only."""
    if _FORGET.exists():
        _FORGET.write_text("5")


def _megabytes(field: str) -> float | None:
    if not _STATUS.exists():
        return None
    found = re.search(rf"{field}:\s+(\d+) kB", _STATUS.read_text())
    assert found, f"no {field} in {_STATUS}"
    return int(found[1]) / 1024


_M_MMAP_THRESHOLD, _LARGE_BYTES = -3, 1 << 18  # name of the setting in glibc's malloc.h, and its value


def return_large_blocks() -> None:
    """Return large blocks of memory, such as images, to the system when they are freed. Needs Linux with glibc."""
    # By default, glibc keeps blocks of up to 32 MiB, for each thread, once blocks of this size were freed.
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


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
