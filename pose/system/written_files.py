"""Record of the files that this program wrote to a folder; commands delete or replace no others.

A hidden file contains their names and the SHA-256 of their contents. Files that are not recorded, or have changed,
belong to the user: if a new file needs their name, they are renamed, never deleted. `writing` applies this to the
files that a command writes.

The only exception is a single file that the user names and allows to replace (`--out FILE --overwrite`).
"""

import hashlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pose.errors import PoseError
from pose.system.shown import shown
from pose.system.whole_file import file_errors, write_whole

RECORD = ".pose-run-files.json"
KEPT = ".kept"  # suffix of renamed files
MOST_BYTES = 64 << 20  # of a record


def say_warning(message: str) -> None:
    """Print a warning to stderr."""
    print(f"warning: {shown(message, 1000)}", file=sys.stderr)


class WrittenFiles:
    """The record of one folder, read at construction. Without a valid record the program owns no file."""

    def __init__(self, folder: Path, warn: Callable[[str], None] = say_warning) -> None:
        """
        Args:
            folder: The folder.
            warn: Called with one line per renamed file.
        """
        self._folder, self._warn = folder, warn
        self._hashes: dict[str, list[str]] = _read(folder / RECORD)

    @property
    def names(self) -> list[str]:
        """Names of files directly in the folder that this program wrote, changed or not."""
        return [name for name in self._hashes if name == Path(name).name and os.path.lexists(self._folder / name)]

    def owns(self, path: Path) -> bool:
        """Whether a file or subfolder is unchanged since this program wrote it."""
        try:
            return _sha256(path) in self._hashes.get(path.name, ())
        except OSError:
            return False

    def expect(self, path: Path, name: str) -> None:
        """Announce that `path` will be renamed to `name`; both its content and the existing one are ours."""
        with file_errors(path):
            sha256 = _sha256(path)
        self._hashes[name] = [one for one in self._hashes.get(name, []) if one != sha256] + [sha256]

    def settled(self, name: str) -> None:
        """Confirm that the announced file has the name `name`."""
        self._hashes[name] = self._hashes[name][-1:]

    def add(self, path: Path) -> None:
        """Record `path` as written by this program. `save` stores the record."""
        with file_errors(path):
            self._hashes[path.name] = [_sha256(path)]

    def make_way(self, path: Path) -> None:
        """Rename a file at `path` that this program did not write, to free the name."""
        if not os.path.lexists(path) or self.owns(path):
            return
        kept = _free_name(path)
        with file_errors(path):
            path.rename(kept)
        reason = "has changed since pose-run wrote it" if path.name in self._hashes else "was not written by pose-run"
        self._warn(f"{path} {reason}; it is kept as {kept.name}")

    def remove(self, path: Path) -> None:
        """Delete a file or folder if this program wrote it and it is unchanged."""
        if not self.owns(path):
            return
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            self._hashes.pop(path.name, None)

    def save(self) -> None:
        """Store the record, without missing files.

        If the disk is full, unrecorded files count as the user's, and stay.
        """
        there = {name: hashes for name, hashes in self._hashes.items() if os.path.lexists(self._folder / name)}
        self._write(there)

    def save_expected(self) -> None:
        """Store the record including names announced by `expect`; otherwise like `save`."""
        self._write(self._hashes)

    def _write(self, hashes: dict[str, list[str]]) -> None:
        if not hashes and not (self._folder / RECORD).exists():
            return
        text = json.dumps(
            {"about": "files written by pose-run: name, SHA-256", "files": hashes}, indent=0, sort_keys=True
        )
        with suppress(PoseError):
            write_whole(self._folder / RECORD, text + "\n")


@contextmanager
def writing(
    paths: Collection[Path], warn: Callable[[str], None] = say_warning, *, rename: bool = True
) -> Iterator[None]:
    """Context of writing files: what this program did not write is renamed before, and the new files are recorded.

    Args:
        paths: Files or folders that the block writes. Parent folders are created.
        warn: See `WrittenFiles`.
        rename: False to replace what is there, if the user continues a run.

    Raises:
        PoseError: If a folder cannot be created, or a file cannot be renamed.
    """
    folders = dict.fromkeys(path.parent for path in paths)
    for folder in folders:
        with file_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        record = WrittenFiles(folder, warn)
        for path in paths:
            if rename and path.parent == folder:
                record.make_way(path)
    try:
        yield
    finally:
        for folder in folders:
            record = WrittenFiles(folder)  # read again: the block may have recorded files
            for path in paths:
                if path.parent == folder and os.path.lexists(path):
                    with suppress(PoseError):  # not recorded, and so never deleted
                        record.add(path)
            record.save()


def _read(path: Path) -> dict[str, list[str]]:
    try:
        state = path.lstat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > MOST_BYTES:
            return {}
        files = json.loads(path.read_bytes())["files"]
        return {str(name): [str(one) for one in hashes] for name, hashes in files.items() if isinstance(hashes, list)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}{KEPT}{suffix}") for suffix in ("", *(f"-{n}" for n in range(2, 10_000))))
    for name in names:
        if not os.path.lexists(name):
            return name
    raise PoseError(f"{path}: cannot be renamed to make room, because all names for a copy are taken; move it away")


def _sha256(path: Path) -> str:
    """SHA-256 of a regular file, or of the names and contents of a folder.

    Raises:
        OSError: For links and others.
    """
    digest = hashlib.sha256()
    for part in _parts(path):
        digest.update(part)
    return digest.hexdigest()


def _parts(path: Path) -> Iterator[bytes]:
    mode = path.lstat().st_mode
    if stat.S_ISREG(mode):
        with path.open("rb") as file:
            yield b"file" + hashlib.file_digest(file, "sha256").digest()
    elif stat.S_ISDIR(mode):
        for entry in sorted(path.iterdir()):
            yield b"name" + os.fsencode(entry.name) + b"\0"
            yield from _parts(entry)
    else:
        raise OSError("neither a file nor a folder")
