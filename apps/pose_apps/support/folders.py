"""Folders for results."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pose.errors import PoseError
from pose.utils.whole_file import make_folder


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Create a folder, and remove it at the end of the context if it is empty."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        make_folder(folder)
    except (FileExistsError, NotADirectoryError) as error:
        raise PoseError(f"{folder}: is not a folder; choose another with --out") from error
    except OSError as error:
        raise PoseError(f"{folder}: cannot be created ({error.strerror}); choose another with --out") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PoseError(f"{folder}: is not writable; choose another with --out")
    try:
        yield
    finally:
        with suppress(OSError):  # not empty
            for path in made:
                path.rmdir()
