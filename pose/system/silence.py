"""Keeping native libraries quiet: they write past Python, straight to the file descriptors."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def silenced(stream: TextIO, descriptor: int) -> Iterator[None]:
    """Whatever is written to `descriptor` (1: standard output, 2: standard error) meanwhile is lost.

    stream: Python's own view of it, flushed first.
    """
    stream.flush()
    kept = os.dup(descriptor)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), descriptor)
    try:
        yield
    finally:
        os.dup2(kept, descriptor)
        os.close(kept)
