"""One member out of a large zip on a web server, without the rest of it: reads the parts it needs (HTTP ranges)."""

import http.client
import io
import re
import urllib.error
import urllib.request
from pathlib import Path

from pose.weights.archive import extract_member
from pose.weights.download import DownloadError, opener_for

BLOCK = 1 << 22  # bytes a request; less where the file ends
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class RangesError(DownloadError):
    """The server does not send parts of files."""


class RemoteFile(io.RawIOBase):
    """A file on a web server, read where it is sought. size: bytes."""

    def __init__(self, url: str, schemes: tuple[str, ...], timeout: float = 30.0) -> None:
        """Raises `RangesError` where the server sends whole files only, `DownloadError` where it does not answer."""
        self._url, self._opener, self._timeout = url, opener_for(url, schemes), timeout
        self._place = 0
        self.size = 1
        self.size = self._request(0, 1)[1]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self.size}[whence]
        self._place = max(0, start + offset)
        return self._place

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = min(len(buffer), self.size - self._place)
        if count <= 0:
            return 0
        data, _ = self._request(self._place, count)
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)

    def _request(self, start: int, count: int) -> tuple[bytes, int]:
        """So many bytes from `start` on, and the size of the file."""
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
            raise DownloadError(f"{self._url} could not be read: {error}") from error
        if len(data) != count:
            raise DownloadError(f"{self._url} could not be read: the connection broke off")
        return data, int(found[3])


def download_member(url: str, member: str, target: Path, *, schemes: tuple[str, ...] = ("https",)) -> None:
    """Write the one member of the zip at `url` whose path is, or ends in, `member` to `target`.

    Raises `RangesError` where the server sends whole files only, `DownloadError` and `ArchiveError`.
    """
    with RemoteFile(url, schemes) as raw, io.BufferedReader(raw, BLOCK) as file:
        extract_member(file, member, target, url.rpartition("/")[2])
