"""Formats that are folders, written atomically."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from pose.utils.whole_file import file_errors
from pose.utils.work_folder import work_folder
from pose.utils.written_files import WrittenFiles


@contextmanager
def whole_folder(target: Path, names: Collection[str]) -> Iterator[Path]:
    """Provide an empty hidden folder to write to, and rename it to `target` at the end."""
    # An existing folder is deleted if this program wrote it and it has not been changed since (`WrittenFiles`).
    # Otherwise it is renamed.
    with work_folder(target.parent, [f"{escape(target.name)}/{name}" for name in names]) as work:
        folder = work / target.name
        with file_errors(target):
            folder.mkdir()
            yield folder
            record = WrittenFiles(target.parent)
            record.remove(target)
            record.move_user_file(target)
            folder.replace(target)
