"""Local copies of files on servers without range requests.

FFmpeg must seek in many videos (the index of an MP4 is often at its end), which requires HTTP range requests. Simple
servers, such as Python's own, do not support them.
"""

import http.client
import re
import shutil
import tempfile
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from pose.errors import PoseError
from pose.video.container import TIMEOUT, Target

_FILE = re.compile(r"https?://[^?#]*\.(mp4|m4v|mov|mkv|webm|avi|gif|webp|mpg|wmv|flv|ogv|3gp)([?#]|$)", re.IGNORECASE)
MIN_PORTION = 1 << 14  # minimum number of bytes of a response, unless the file is shorter
BLOCK = 1 << 18  # bytes per read


def names_file(target: Target) -> bool:
    """Return whether an HTTP address names a video file. Others may be cameras, some of which accept one connection."""
    return _FILE.match(target.url) is not None


def check_server(target: Target, timeout: float = TIMEOUT) -> None:
    """Check that an HTTP server does not answer with so few bytes that thousands of requests would follow.

    Raises:
        PoseError: If it does.
    """
    if not target.url.lower().startswith(("http://", "https://")):
        return
    with suppress(OSError, http.client.HTTPException, ValueError), _whole_file(target, timeout) as response:
        found = re.fullmatch(r"bytes 0-(\d+)/(\d+)", response.headers.get("Content-Range", "").strip())
        if found is not None and (portion := int(found[1]) + 1) < min(int(found[2]), MIN_PORTION):
            raise PoseError(f"cannot read {target.display_name}: its server sends too little per request ({portion} B)")


def _whole_file(target: Target, timeout: float = TIMEOUT) -> http.client.HTTPResponse:
    """Request all bytes of a file on a server."""
    request = urllib.request.Request(target.url, headers={"Range": "bytes=0-", "User-Agent": "pose-run"})
    response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=timeout)
    return response


class ServerCopy:
    """A temporary copy of a file on a server; messages show the name of the original."""

    def __init__(self, target: Target, save: Callable[[Path], None]) -> None:
        """Make the copy by `save`, which writes the file to a path."""
        self._folder = Path(tempfile.mkdtemp(prefix="pose-copy-"))
        path = self._folder / "video"
        self.target = Target(f"file:{path}", target.display_name, stream=target.stream)  # target that opens the copy
        try:
            save(path)
        except OSError as error:
            self.close()
            raise PoseError(
                f"cannot copy {target.display_name} to {self._folder}: {error.strerror or error}"
            ) from error
        except BaseException:
            self.close()
            raise

    @classmethod
    def where_needed(cls, target: Target) -> Self | None:
        """Copy a file whose server does not support range requests; return None for everything else."""
        if not target.url.lower().startswith(("http://", "https://")):
            return None
        try:
            response = _whole_file(target)
        except (OSError, http.client.HTTPException, ValueError):
            return None
        with response:
            if response.status != http.HTTPStatus.OK or not response.headers.get("Content-Length"):
                return None

            def save(path: Path) -> None:
                with path.open("wb") as file:
                    shutil.copyfileobj(response, file, BLOCK)

            return cls(target, save)

    def close(self) -> None:
        """Delete the copy."""
        shutil.rmtree(self._folder, ignore_errors=True)
