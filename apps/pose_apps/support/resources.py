"""What this machine, or the container in which we are, has to give."""

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_MEMORY = Path("/proc/meminfo")


def available_cores() -> int:
    """Processors that this process may use: those it is allowed on, and no more than its container's share."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = _words(_CGROUP / "cpu.max")
    if len(share) == 2 and all(word.isdigit() for word in share):
        allowed = min(allowed, max(1, round(int(share[0]) / int(share[1]))))
    return allowed


def available_megabytes() -> float | None:
    """Memory that can be had without taking it from others; None where the system does not say (not Linux)."""
    if not _MEMORY.exists():
        return None
    line = next(line for line in _MEMORY.read_text().splitlines() if line.startswith("MemAvailable:"))
    free = int(line.split()[1]) / 1024
    most, used = _words(_CGROUP / "memory.max"), _words(_CGROUP / "memory.current")
    if most and used and most[0].isdigit():
        free = min(free, (int(most[0]) - int(used[0])) / 2**20)
    return free


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
