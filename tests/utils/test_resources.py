"""Memory of a command."""

import platform
import subprocess
import sys

import pytest

_PROGRAM = """
import numpy as np
from pose.utils.resources import resident_megabytes, return_large_blocks
return_large_blocks()
large = np.ones(30 << 17)
del large  # after a free block of 30 MiB, glibc keeps smaller ones
held = resident_megabytes()
blocks, between = zip(*((np.ones(1 << 17), np.ones(1000)) for _ in range(100)))
del blocks
print(resident_megabytes() - held)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_freed_images_are_returned_to_the_system():
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 20  # MiB, of 100
