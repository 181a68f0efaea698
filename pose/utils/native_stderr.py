"""Messages that native libraries write to the terminal: reading or suppressing them.

libpng and libjpeg write each fault of an image to stderr, and no setting of OpenCV stops them.
"""

import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

_STDERR = 2
_LOCK = threading.Lock()
_OF_DECODERS = re.compile(
    rb"(libpng (warning|error)|Corrupt JPEG data|Premature end of JPEG|Invalid SOS|Unsupported JPEG|Not a JPEG|"
    rb"Bogus |Inconsistent progression|TIFF\w*:|\w*: .*TIFF|Application transferred too few).*\n?"
)


@contextmanager
def quiet_image_decoders() -> Iterator[None]:
    """Return a context manager that drops the messages of image decoders; all else reaches stderr at its end."""
    with _LOCK, tempfile.TemporaryFile() as held:
        kept = None
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()
            kept = os.dup(_STDERR)
            os.dup2(held.fileno(), _STDERR)
        try:
            yield
        finally:
            if kept is not None:
                with suppress(OSError, ValueError, AttributeError):
                    sys.stderr.flush()
                os.dup2(kept, _STDERR)
                os.close(kept)
                held.seek(0)
                if rest := _OF_DECODERS.sub(b"", held.read()):
                    with suppress(OSError):
                        os.write(_STDERR, rest)


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
