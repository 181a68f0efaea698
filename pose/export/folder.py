"""Formats that are a folder: it appears under its name only when it is whole."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pose.errors import PoseError
from pose.system.whole_file import WholeFile, file_errors


@contextmanager
def whole_folder(target: Path, own: str) -> Iterator[Path]:
    """An empty hidden folder to write into; at the end it replaces an earlier result at `target`.

    own: regular expression of the names that a result holds. Raises PoseError for a folder that holds anything else,
    for a link to one, and where it cannot be written.
    """
    folder = WholeFile(target)
    try:
        with file_errors(target):
            folder.path.mkdir()
            yield folder.path
            _remove_earlier(target, own)
            folder.path.replace(target)
    finally:
        shutil.rmtree(folder.path, ignore_errors=True)


def _remove_earlier(target: Path, own: str) -> None:
    if target.is_dir() and not target.is_symlink():
        if foreign := [path.name for path in target.iterdir() if not re.fullmatch(own, path.name)]:
            raise PoseError(f"{target}: contains other files, such as {foreign[0]}; move them away")
        shutil.rmtree(target)
    elif os.path.lexists(target):
        raise PoseError(f"{target}: is not a folder of an earlier result; move it away")
