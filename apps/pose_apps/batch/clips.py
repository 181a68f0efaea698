"""Which clips a call of `pose-batch` means, what each is called in the results, and whose shard it is."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from urllib.parse import urlsplit

from pose.errors import UsageError
from pose.video.images import SUFFIXES as PICTURES
from pose.video.images import WILDCARDS

_ENDINGS = "3gp asf avi flv gif m2ts m4v mkv mov mp4 mpeg mpg mts mxf ogv ts vob webm wmv"
VIDEOS = frozenset("." + name for name in _ENDINGS.split(" "))
LISTS = frozenset({".txt", ".lst"})
RESULTS = ("poses.json", "poses.npz")  # a folder that holds one is a result, no input


@dataclass(frozen=True, slots=True)
class Clip:
    """path: what `pose-run` would be given. name: of its folder in the results, with / between parts."""

    path: str
    name: str

    def signature(self) -> list[int] | None:
        """What changes when the content does, without reading it; None where nothing is known, as of an address."""
        path = Path(self.path)
        try:
            files = [path] if path.is_file() else [one for one in path.iterdir() if one.is_file()]
            states = [one.stat() for one in files]
        except OSError:
            return None
        return [len(states), sum(one.st_size for one in states), max((one.st_mtime_ns for one in states), default=0)]


def find_clips(inputs: list[str], out: Path) -> list[Clip]:
    """The clips that files, folders, globs, addresses and lists of them mean, each once, in their order.

    out: the folder of the results, which holds no clips. Raises UsageError for an input that is not there, and
    where there is no clip at all.
    """
    found: dict[str, str] = {}  # path -> name
    for given in inputs:
        for path, name in _meant(given, out.resolve()):
            found.setdefault(path, name)
    if not found:
        raise UsageError(f"no clips in {', '.join(inputs)}; videos end in {', '.join(sorted(VIDEOS))}")
    return [Clip(path, name) for path, name in zip(found, _distinct(list(found), list(found.values())), strict=True)]


def shard_of(clips: list[Clip], shard: tuple[int, int]) -> list[Clip]:
    """The clips of shard (i, n): those whose name's hash says i, whatever other clips there are."""
    index, count = shard
    return [clip for clip in clips if int(_hash(clip.name), 16) % count == index]


def read_shard(text: str) -> tuple[int, int]:
    """(i, n) of `i/n`. Raises UsageError."""
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal()) or not int(index) < int(count):
        raise UsageError(f"--shard: {text} is no shard; give i/n with i from 0 to n - 1, such as 0/4")
    return int(index), int(count)


def _meant(given: str, out: Path) -> Iterator[tuple[str, str]]:
    """Path and name of every clip that one input means."""
    path = Path(given).expanduser()
    if "://" in given and not path.exists():
        parts = urlsplit(given)
        yield given, _clean(Path(parts.path).stem or parts.hostname or "stream")
    elif path.is_dir():
        yield from _in_folder(path, out)
    elif path.suffix.lower() in LISTS and path.is_file():
        yield from _listed(path, out)
    elif path.exists():
        yield str(path), _clean(path.stem)
    elif WILDCARDS.search(given):
        matches = sorted(glob(str(path), recursive=True))
        if not matches:
            raise UsageError(f"{given}: nothing matches")
        for match in matches:
            yield from _meant(match, out)
    else:
        raise UsageError(f"{given}: no such file or folder")


def _listed(path: Path, out: Path) -> Iterator[tuple[str, str]]:
    """A line a clip; paths count from the list's folder. What is not there fails as a clip, not as a call."""
    for line in path.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        there = text if "://" in text else str(path.parent / Path(text).expanduser())
        if "://" not in text and not Path(there).exists() and not WILDCARDS.search(text):
            yield there, _clean(Path(there).stem)
        else:
            yield from _meant(there, out)


def _in_folder(folder: Path, out: Path) -> Iterator[tuple[str, str]]:
    """Every video at any depth; a folder with pictures and no video is one clip. Hidden things and results are none."""
    for place, folders, files in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and (here / name).resolve() != out)
        if here.resolve() == out or any(name in files for name in RESULTS):
            folders.clear()
            continue
        seen = sorted(name for name in files if not name.startswith("."))
        videos = [name for name in seen if Path(name).suffix.lower() in VIDEOS]
        for name in videos:
            yield str(here / name), (here / name).relative_to(folder).with_suffix("").as_posix()
        if not videos and any(Path(name).suffix.lower() in PICTURES for name in seen):
            inner = here.relative_to(folder).as_posix()
            yield str(here), _clean(here.resolve().name) if inner == "." else inner


def _distinct(paths: list[str], names: list[str]) -> list[str]:
    """Names no two of which are alike: with the ending where it tells them apart, else with a hash of the path."""
    endings = [Path(path).suffix.lower().replace(".", "-") for path in paths]
    for marks in (endings, [f"-{_hash(path)[:8]}" for path in paths]):
        count = Counter(name.lower() for name in names)  # disks may not tell capitals apart
        names = [name + mark if count[name.lower()] > 1 else name for name, mark in zip(names, marks, strict=True)]
    return names


def _clean(name: str) -> str:
    return name.lstrip(".") or "clip"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
