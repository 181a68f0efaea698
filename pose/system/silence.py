"""Keeping native libraries quiet: they write past Python, straight to the file descriptors."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_one_at_a_time = threading.RLock()  # two that overlap would give the stream back in the wrong order, which is for good


@contextmanager
def silenced(stream: TextIO, descriptor: int) -> Iterator[None]:
    """Whatever is written to `descriptor` (1: standard output, 2: standard error) meanwhile is lost.

    stream: Python's own view of it, flushed first.
    """
    with _one_at_a_time:
        stream.flush()
        kept = os.dup(descriptor)
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), descriptor)
        try:
            yield
        finally:
            os.dup2(kept, descriptor)
            os.close(kept)
