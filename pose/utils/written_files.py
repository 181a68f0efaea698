"""Record of the files that this program wrote to a folder. Commands delete or replace only recorded files.

A hidden file contains the names and SHA-256 hashes of the written files. Files that are not recorded, or have changed
since, belong to the user. If a new file needs the name of a user's file, the user's file is renamed, never deleted.
`writing` applies this to the files that a command writes.
This includes a file that the user names, with `--out FILE --overwrite`. Devices, pipes and sockets are left alone.
"""

import hashlib
import json
import os
import shutil
import stat
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pose.errors import PoseError, UsageError
from pose.utils.shown import shown
from pose.utils.whole_file import SPECIAL, file_errors, is_special, make_folder, write_whole

RECORD = ".pose-run-files.json"
KEPT = ".kept"  # suffix of the user's files that were renamed
MAX_WAIT_S = 5.0  # time after which another process's change of the record is over
_WRITING = "written by process "
_WRITING_HERE = f"{_WRITING}{os.getpid()}"
MAX_RECORD_BYTES = 64 << 20  # maximum size of a record


def print_warning(message: str) -> None:
    """Print a warning to stderr."""
    print(f"warning: {shown(message, 1000)}", file=sys.stderr)


class WrittenFiles:
    """Record of the files that this program wrote to one folder; without a valid one, all count as the user's."""

    def __init__(self, folder: Path, warn: Callable[[str], None] = print_warning) -> None:
        """Read the record of a folder."""
        self._folder, self._warn = folder, warn
        self._hashes: dict[str, list[str]] = _read(folder / RECORD)

    @property
    def names(self) -> list[str]:
        """Names of the recorded files that still exist directly in the folder, changed or not."""
        return [name for name in self._hashes if name == Path(name).name and os.path.lexists(self._folder / name)]

    def owns(self, path: Path) -> bool:
        """Return whether this program wrote a file or subfolder, and it has not changed since."""
        known = self._hashes.get(path.name, ())
        if any(map(_is_being_written, known)):
            return True
        try:
            return _sha256(path) in known
        except OSError:
            return False

    def expect(self, path: Path, name: str) -> None:
        """Announce that `path` will be renamed to `name`; until `confirm`, `owns` accepts old and new content."""
        with file_errors(path):
            sha256 = _sha256(path)
        self._hashes[name] = [one for one in self._hashes.get(name, []) if one != sha256] + [sha256]

    def confirm(self, name: str) -> None:
        """Confirm that the file announced by `expect` has been renamed to `name`."""
        self._hashes[name] = self._hashes[name][-1:]

    def add(self, path: Path) -> None:
        """Record `path` as written by this program. `save` stores the record."""
        others = [one for one in self._hashes.get(path.name, []) if _is_being_written(one)]
        with file_errors(path):
            self._hashes[path.name] = [_sha256(path), *others]

    def announce(self, path: Path) -> None:
        """Record that this process writes `path`, so that others that run at the same time do not keep its file."""
        self._hashes[path.name] = [*self._hashes.get(path.name, []), _WRITING_HERE]

    def withdraw(self, path: Path) -> None:
        """Take back one `announce` of a path; those of other threads remain."""
        with suppress(KeyError, ValueError):
            self._hashes[path.name].remove(_WRITING_HERE)

    def move_user_file(self, path: Path) -> None:
        """Rename a file that this program did not write to an unused name beside it; PoseError if it fails."""
        if not os.path.lexists(path) or self.owns(path):
            return
        if is_special(path):
            raise PoseError(f"{path}: {SPECIAL}")
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
        """Write the record of all files that exist or are being written; on failure, files count as the user's."""
        kept = {
            name: hashes
            for name, hashes in self._hashes.items()
            if hashes and (os.path.lexists(self._folder / name) or any(map(_is_being_written, hashes)))
        }
        self._write(kept)

    def save_expected(self) -> None:
        """Write the record like `save`, but include announced names whose files do not exist yet."""
        self._write(self._hashes)

    def _write(self, hashes: dict[str, list[str]]) -> None:
        if not hashes:
            with suppress(OSError):
                (self._folder / RECORD).unlink()
            return
        text = json.dumps(
            {"about": "files written by pose-run: name, SHA-256", "files": hashes}, indent=0, sort_keys=True
        )
        with suppress(PoseError):
            write_whole(self._folder / RECORD, text + "\n")


def check_target(path: Path, inputs: Iterable[Path | str] = (), *, overwrite: bool, folder: bool = False) -> None:
    """Check, before any work, that a call may write a file, or a `folder`, beside the `inputs` that it reads.

    `overwrite` allows to replace an existing file; `writing` keeps those that this program did not write.

    Raises:
        UsageError: If the path is an input, or exists without `overwrite`, or cannot be replaced by a file.
    """
    check_not_input([path], inputs)
    if is_special(path):
        raise UsageError(f"{path}: {SPECIAL}")
    if path.is_dir() and not path.is_symlink() and not folder:
        raise UsageError(f"{path}: is a folder; give the name of the file to write")
    if os.path.lexists(path) and not overwrite:
        raise UsageError(f"{path} exists; give --overwrite to replace it, or choose another file")


def check_not_input(paths: Iterable[Path], inputs: Iterable[Path | str]) -> None:
    """Check that no file that a call would write is one of its inputs; UsageError if one is."""
    read = [Path(name) for name in inputs]
    for path in paths:
        with suppress(OSError, ValueError):
            if path.exists() and any(one.exists() and path.samefile(one) for one in read):
                raise UsageError(f"{path}: the result would replace an input; choose another file or folder")


@contextmanager
def saving(path: Path, *, overwrite: bool) -> Iterator[None]:
    """Return a context manager for a block that writes a file for a caller of the Python API.

    A file that this program wrote is replaced; another one is renamed with a warning if `overwrite`, else a UsageError.
    """
    owned = WrittenFiles(path.parent).owns(path)
    if path.is_dir() or is_special(path):
        check_target(path, overwrite=True)
    if os.path.lexists(path) and not (owned or overwrite):
        raise UsageError(f"{path} exists; give overwrite=True to replace it")
    with writing([path], lambda message: warnings.warn(message, UserWarning, stacklevel=4)):
        yield


@contextmanager
def writing(
    paths: Collection[Path], warn: Callable[[str], None] = print_warning, *, rename: bool = True
) -> Iterator[None]:
    """Return a context manager for a block that writes files or folders, whose parent folders are created.

    Existing files of the user are renamed first, and `warn` gets a line for each; with `rename` False they are
    replaced, as when a run is resumed. The new files are recorded at the end. PoseError if a folder or name cannot be
    made.
    """
    folders = dict.fromkeys(path.parent for path in paths)
    for folder in folders:
        with file_errors(folder):
            make_folder(folder)
        with _changing(folder):
            record = WrittenFiles(folder, warn)
            for path in paths:
                if path.parent == folder:
                    if rename:
                        record.move_user_file(path)
                    record.announce(path)
            record.save_expected()
    try:
        yield
    finally:
        for folder in folders:
            with _changing(folder):
                record = WrittenFiles(folder)  # read again: the block or another process may have recorded files
                for path in paths:
                    if path.parent == folder:
                        record.withdraw(path)
                        with suppress(PoseError):  # a file that is missing or not recorded is never deleted
                            record.add(path)
                record.save()


def record_files(folder: Path, written: Iterable[Path], gone: Iterable[Path] = ()) -> None:
    """Record files of a folder that exist, and delete others, `gone`, that this program wrote."""
    with _changing(folder):
        record = WrittenFiles(folder)
        for path in gone:
            record.remove(path)
        for path in written:
            if path.parent == folder and os.path.lexists(path):
                with suppress(PoseError):  # a file that is not recorded is never deleted
                    record.add(path)
        record.save_expected()


@contextmanager
def _changing(folder: Path) -> Iterator[None]:
    """Let one process at a time read and write the record of a folder; not longer than `MAX_WAIT_S`."""
    # A file, because the lock of the folder itself is held by runs, which write exports meanwhile.
    lock, end = folder / f"{RECORD}.lock", time.monotonic() + MAX_WAIT_S
    made = False
    while not made and time.monotonic() < end:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            made = True
        except FileExistsError:
            with suppress(OSError):
                if time.time() - lock.stat().st_mtime > MAX_WAIT_S:  # of a killed process
                    lock.unlink()
            time.sleep(0.01)
        except OSError:  # for example a folder that cannot be written
            break
    try:
        yield
    finally:
        if made:
            lock.unlink(missing_ok=True)


def _is_being_written(entry: str) -> bool:
    """Return whether an entry of the record names a process that still runs."""
    if entry == _WRITING_HERE:
        return True
    if not entry.startswith(_WRITING) or sys.platform == "win32":  # where `os.kill` ends the process
        return False
    try:
        os.kill(int(entry.removeprefix(_WRITING)), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return True


def _read(path: Path) -> dict[str, list[str]]:
    try:
        state = path.lstat()
        if not stat.S_ISREG(state.st_mode) or state.st_size > MAX_RECORD_BYTES:
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
    """Return the SHA-256 of a regular file, or of the names and contents of a folder."""
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
