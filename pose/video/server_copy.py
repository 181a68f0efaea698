"""Local copies of files on servers without range requests.

FFmpeg must seek in many videos (the index of an MP4 is often at its end), which requires HTTP range requests. Simple
servers, such as Python's own, do not support them.
"""

import http.client
import shutil
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Self

from pose.errors import PoseError
from pose.video.container import TIMEOUT, Target

BLOCK = 1 << 18  # bytes per read


class ServerCopy:
    """A temporary copy of a file on a server.

    Attributes:
        target: Target that opens the copy; messages show the name of the original.
    """

    def __init__(self, target: Target, save: Callable[[Path], None]) -> None:
        """Make the copy.

        Args:
            target: The file on the server.
            save: Function that writes the file to a path.

        Raises:
            PoseError: If the copy cannot be written.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="pose-copy-"))
        path = self._folder / "video"
        self.target = Target(f"file:{path}", target.display_name)
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
        """Copy a file whose server does not support range requests; return None for everything else.

        Raises:
            PoseError: If the download fails.
        """
        if not target.url.lower().startswith(("http://", "https://")):
            return None
        request = urllib.request.Request(target.url, headers={"Range": "bytes=0-", "User-Agent": "pose-run"})
        try:
            response = urllib.request.urlopen(request, timeout=TIMEOUT)
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
