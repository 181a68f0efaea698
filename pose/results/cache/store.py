"""Cache entries on disk, written atomically, verified by a hash, and removed in order of least recent use.

An entry is a file `KEY.entry`. It holds a magic string, the key, the content, JSON metadata, the length of the
metadata, and the SHA-256 of all preceding bytes. Entries are written in a hidden folder and then renamed, so several
processes can share one cache and may be killed at any time. Entries contain no executable content.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

from pose.errors import PoseError
from pose.structures.defaults import CACHE_GIGABYTES
from pose.utils.json_values import strict_json
from pose.utils.whole_file import file_errors
from pose.utils.work_folder import work_folder
from pose.utils.written_files import WrittenFiles

MAGIC = b"pose-run cache 1\n"
KEY_GLOB = "[0-9a-f]" * 64  # glob of the names of unfinished entries
SUFFIX = ".entry"
_HASH = hashlib.sha256().digest_size
_LENGTH = 8  # bytes of the length of the metadata, which precedes the hash
_CHUNK = 1 << 20
_NAME = re.compile(r"[0-9a-f]+\.entry")


class Cache:
    """Cache folder with a maximum size. Use it as a context manager."""

    def __init__(self, folder: Path, max_bytes: float = 1e9 * CACHE_GIGABYTES) -> None:
        self.folder = folder  # path of the cache folder. It is created with access for its owner only
        self.problem: str | None = None  # reason why no more entries are stored; None if there is no problem
        self._max_bytes = max_bytes
        self._stack = ExitStack()
        self._work: Path | None = None

    def __enter__(self) -> Self:
        """Create the folder if necessary; PoseError if it is not writable, or another user's."""
        with file_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _is_own(self.folder.stat()):
                raise PoseError(f"--cache: {self.folder} belongs to another user; choose your own folder, or off")
        self._work = self._stack.enter_context(work_folder(self.folder, [KEY_GLOB]))
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def find(self, key: str) -> "Entry | None":
        """Return the entry of a hexadecimal key; None if there is no intact entry.

        A damaged entry is removed. Files that were not written by a cache are never removed.
        """
        path = self._path(key)
        try:
            file = _opened(path)
        except OSError:
            return None
        entry = Entry.checked(file, key)
        if entry is None:
            file.close()
            self.remove(key)
            return None
        with suppress(OSError):
            os.utime(path)  # marks it as recently used
        return entry

    def remove(self, key: str) -> None:
        """Delete the entry of a key."""
        path = self._path(key)
        with suppress(OSError):
            if _is_entry(path):
                path.unlink()

    @contextmanager
    def create(self, key: str) -> Iterator["NewEntry"]:
        """Yield a new entry to write, stored by `NewEntry.commit`; if the disk is full, only `problem` is set."""
        assert self._work is not None, "used as a context"
        entry = NewEntry(self._work / key, key)
        try:
            yield entry
        finally:
            entry.close()
            self.problem = self.problem or entry.problem
            if entry.complete and self.problem is None:
                self._publish(entry.path, self._path(key))
            with suppress(OSError):
                entry.path.unlink(missing_ok=True)

    def _publish(self, new: Path, path: Path) -> None:
        """Move a new entry to its final path. An existing file that was not written by a cache is renamed."""
        try:
            if os.path.lexists(path) and not _is_entry(path):
                WrittenFiles(self.folder).move_user_file(path)
            new.replace(path)
            self._trim()
        except PoseError as error:
            self.problem = str(error)
        except OSError as error:
            self.problem = f"{self.folder}: {error.strerror or error}"

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"

    def _trim(self) -> None:
        """Remove the least recently used entries until the total size is within the limit."""
        entries = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            with suppress(OSError):  # another process removed it
                if not _is_entry(path):
                    continue
                status = path.stat()
                entries.append((status.st_mtime_ns, path.name, status.st_size, path))
        left = sum(size for _, _, size, _ in entries)
        for _, _, size, path in sorted(entries):
            if left <= self._max_bytes:
                return
            with suppress(OSError):
                path.unlink()
            left -= size


def _opened(path: Path) -> IO[bytes]:
    """Open an entry that belongs to this user."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    state = os.fstat(descriptor)
    if not stat.S_ISREG(state.st_mode) or not _is_own(state):
        os.close(descriptor)
        raise PermissionError(f"{path}: not owned by this user")
    return os.fdopen(descriptor, "rb")


def _is_own(state: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or state.st_uid == os.geteuid()


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read (an opener for the function `open`)."""
    return os.open(path, flags, 0o600)


def _is_entry(path: Path) -> bool:
    """Return whether a file is a complete or incomplete cache entry, judged by its name and first bytes."""
    if not _NAME.fullmatch(path.name) or not stat.S_ISREG(path.lstat().st_mode):
        return False
    with path.open("rb") as file:
        return MAGIC.startswith(file.read(len(MAGIC)))


class NewEntry:
    """An entry being written."""

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self.problem: str | None = None  # reason why the entry cannot be stored; None if there is no problem
        self.complete = False  # whether the entry is complete
        self._hash = hashlib.sha256()
        self._file: IO[bytes] | None = None
        try:
            self._file = open(path, "wb", opener=_private)  # noqa: SIM115 - closed by `close`
        except OSError as error:
            self._give_up(error)
        self.write(MAGIC + bytes.fromhex(key))

    def write(self, content: bytes) -> None:
        """Append bytes to the content. A failure sets `problem` and raises no error."""
        if self._file is not None and self.problem is None:
            try:
                self._file.write(content)
                self._hash.update(content)
            except OSError as error:
                self._give_up(error)

    def commit(self, metadata: dict[str, Any]) -> None:
        """Append metadata and hash, and close the file; set `complete`, or `problem` on failure."""
        tail = json.dumps(metadata).encode()
        self.write(tail + len(tail).to_bytes(_LENGTH, "little"))
        self.write(self._hash.digest())
        self.close()
        self.complete = self.problem is None

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.problem = f"{self.path.parent.parent}: {error.strerror or error}"


class Entry:
    """A cache entry whose hash has been verified; its file starts at the content."""

    def __init__(self, file: IO[bytes], metadata: dict[str, Any], end: int) -> None:
        self.file, self.metadata, self.end = file, metadata, end

    @classmethod
    def checked(cls, file: IO[bytes], key: str) -> Self | None:
        """Verify an opened file; return its entry, or None if it is damaged or not the entry of `key`."""
        start = MAGIC + bytes.fromhex(key)
        try:
            end = file.seek(0, os.SEEK_END) - _HASH
            if end < len(start) + _LENGTH or _digest(file, end) != file.read(_HASH):
                return None
            file.seek(end - _LENGTH)
            length = int.from_bytes(file.read(_LENGTH), "little")
            if length > end - _LENGTH - len(start):
                return None
            file.seek(end - _LENGTH - length)
            metadata = strict_json(file.read(length))
            file.seek(0)
            content_end = end - _LENGTH - length
            starts = file.read(len(start)) == start
            return cls(file, metadata, content_end) if starts and isinstance(metadata, dict) else None
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def _digest(file: IO[bytes], end: int) -> bytes:
    """Return the SHA-256 of the first `end` bytes, and leave the file position after these bytes."""
    file.seek(0)
    digest = hashlib.sha256()
    while end > 0 and (chunk := file.read(min(end, _CHUNK))):
        digest.update(chunk)
        end -= len(chunk)
    return digest.digest()


def open_cache(name: str, gigabytes: float = CACHE_GIGABYTES) -> Cache:
    """Return the cache in the folder of the option `--cache`; PoseError if the path exists but is not a folder."""
    folder = Path(name).expanduser()
    if folder.exists() and not folder.is_dir():
        raise PoseError(f"--cache: {folder} is not a folder; choose another, or off")
    return Cache(folder, gigabytes * 1e9)
