"""Extraction of one named member from a zip or wheel.

The output path never comes from the archive."""

import shutil
from pathlib import Path
from typing import IO

from pose.errors import PoseError
from pose.networks.weights.catalogue import SourceError
from pose.utils.archives import CHUNK, open_archive


class ArchiveError(SourceError):
    """An archive is damaged or lacks the expected content."""


def extract_member(archive: Path | IO[bytes], member: str, target: Path, name: str | None = None) -> None:
    """Write one file of a zip, given by its path or the end of it, to `target`."""
    try:
        with open_archive(archive, name or (archive.name if isinstance(archive, Path) else "the archive")) as content:
            found = [known for known in content.names if known == member or known.endswith(f"/{member}")]
            if len(found) != 1:
                raise ArchiveError(f"{content.label} contains {len(found)} files named {member}; expected one")
            with content.stream(found[0]) as source, target.open("wb") as out:
                shutil.copyfileobj(source, out, CHUNK)
    except ArchiveError:
        raise
    except PoseError as error:
        raise ArchiveError(str(error)) from error
