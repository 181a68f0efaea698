"""Suppression of output that native libraries write directly to file descriptors."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_lock = threading.RLock()  # overlapping contexts would restore the stream in the wrong order


@contextmanager
def silenced(stream: TextIO, descriptor: int) -> Iterator[None]:
    """Return a context manager that discards all output to descriptor 1 (stdout) or 2 (stderr)."""
    with _lock:
        stream.flush()
        saved = os.dup(descriptor)
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), descriptor)
        try:
            yield
        finally:
            os.dup2(saved, descriptor)
            os.close(saved)
