"""How much memory some code takes, in a process of its own: what others left in this one's heap would count too."""

import subprocess
import sys

import pytest

from pose.utils.resources import resident_megabytes

_PROGRAM = """
import sys
from pose.utils.resources import forget_peak, peak_megabytes, resident_megabytes
{before}
forget_peak()
held = resident_megabytes()
{code}
print(peak_megabytes() - held)
"""
needs_proc = pytest.mark.skipif(resident_megabytes() is None, reason="needs Linux's /proc to measure memory")


def megabytes_grown(before: str, code: str, *words: object) -> tuple[float, str]:
    """MB that `code` held at its peak beyond what was held at its beginning, and what it printed.

    before: code that runs first. words: `sys.argv[1:]` of both.
    """
    program = _PROGRAM.format(before=before, code=code)
    command = [sys.executable, "-c", program, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *said, grown = done.stdout.splitlines()
    return float(grown), "\n".join(said)
