"""Extraction of one member from a zip or wheel, on disk or on a web server with range requests.

The output path never comes from the archive.
"""

import http.client
import io
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO

from pose.errors import PoseError
from pose.networks.weights.catalogue import SCHEMES, SourceError
from pose.networks.weights.download import TIMEOUT_S, DownloadError, opener_for, reason_of
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


BLOCK = 1 << 22  # bytes per request
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class RangesError(DownloadError):
    """The server does not support range requests."""


class RemoteFile(io.RawIOBase):
    """A seekable read-only file on a web server."""

    def __init__(self, url: str, schemes: tuple[str, ...], timeout: float = TIMEOUT_S) -> None:
        """Open the file."""
        self._url, self._opener, self._timeout = url, opener_for(url, schemes), timeout
        self._place = 0
        self.size = 1  # size in bytes
        self.size = self._request(0, 1)[1]

    def readable(self) -> bool:
        """Return True: the file can be read."""
        return True

    def seekable(self) -> bool:
        """Return True: the position can be changed."""
        return True

    def tell(self) -> int:
        """Return the current position in the file, in bytes."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position and return it, in bytes from the start; the arguments are those of `io.IOBase.seek`."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self.size}[whence]
        self._place = max(0, start + offset)
        return self._place

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read bytes into `buffer`, and return their number; 0 at the end of the file."""
        count = min(len(buffer), self.size - self._place)
        if count <= 0:
            return 0
        data, _ = self._request(self._place, count)
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def _request(self, start: int, count: int) -> tuple[bytes, int]:
        """Read `count` bytes from offset `start`; return these bytes and the size of the whole file."""
        asked = {"User-Agent": "pose-run", "Accept-Encoding": "identity", "Range": f"bytes={start}-{start + count - 1}"}
        try:
            with self._opener.open(urllib.request.Request(self._url, headers=asked), timeout=self._timeout) as response:
                found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
                if response.status != http.HTTPStatus.PARTIAL_CONTENT or not found or int(found[1]) != start:
                    raise RangesError(f"{self._url} does not support range requests")
                data = response.read(count)
        except urllib.error.HTTPError as error:
            error.close()
            raise DownloadError(f"{self._url} answered {error.code} {error.reason}") from error
        except (OSError, http.client.HTTPException) as error:
            raise DownloadError(f"{self._url} could not be read: {reason_of(error)}") from error
        if len(data) != count:
            raise DownloadError(f"{self._url} could not be read: the connection was closed early")
        return data, int(found[3])


def download_member(url: str, member: str, target: Path, *, schemes: tuple[str, ...] = SCHEMES) -> None:
    """Write one file of a zip on a web server, by its path or the end of it, to `target`, without the whole zip."""
    with RemoteFile(url, schemes) as raw, io.BufferedReader(raw, BLOCK) as file:
        extract_member(file, member, target, url.rpartition("/")[2])
