"""Current and peak memory of this process."""

import re
from pathlib import Path

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
