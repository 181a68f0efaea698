"""Which clips a call of `pose-batch` means, what each is called in the results, and whose shard it is."""

import codecs
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from urllib.parse import urlsplit

from pose.errors import UsageError, in_brief
from pose.system.json_types import read_text_file
from pose.system.shown import shown
from pose.video.images import SUFFIXES as PICTURES
from pose.video.images import WILDCARDS

_ENDINGS = "3gp asf avi flv gif m2ts m4v mkv mov mp4 mpeg mpg mts mxf ogv ts vob webm wmv"
VIDEOS = frozenset("." + name for name in _ENDINGS.split(" "))
LISTS = frozenset({".txt", ".lst"})
MOST_DEEP = 8  # lists within lists
MOST_BYTES = 64 << 20  # of a list
_RESERVED = re.compile(r"^manifest.*\.jsonl$", re.IGNORECASE | re.DOTALL)  # names of files of pose-batch's own
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
        raise UsageError(f"--shard: invalid shard {text!r}; expected I/N with I from 0 to N - 1, such as 0/4")
    return int(index), int(count)


def _meant(given: str, out: Path, within: tuple[Path, ...] = ()) -> Iterator[tuple[str, str]]:
    """Path and name of every clip that one input means. within: the lists that name it, outermost first."""
    path = Path(os.path.expanduser(given))
    there = _is_there(path)
    if "://" in given and not there:
        yield given, _clean(_address_name(given))
    elif path.is_dir():
        yield from _in_folder(path, out)
    elif path.suffix.lower() in LISTS and path.is_file():
        yield from _listed(path, out, within)
    elif there:
        yield str(path), _clean(path.stem)
    elif WILDCARDS.search(given):
        matches = sorted(glob(str(path), recursive=True))
        if not matches:
            raise UsageError(f"{shown(given)}: nothing matches")
        for match in matches:
            yield from _meant(match, out, within)
    else:
        raise UsageError(f"{shown(given)}: no such file or folder")


def _listed(path: Path, out: Path, within: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """A line a clip; paths count from the list's folder. What is not there fails as a clip, not as a call."""
    inner = (*within, path.resolve())
    if path.resolve() in within or len(inner) > MOST_DEEP:
        raise UsageError(f"{path}: the list includes itself, or lists nest more than {MOST_DEEP} deep")
    for line in _lines(path):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        there = text if "://" in text else str(path.parent / os.path.expanduser(text))
        if "://" not in text and not _is_there(Path(there)) and not WILDCARDS.search(text):
            yield there, _clean(Path(there).stem)
        else:
            yield from _meant(there, out, inner)


def _is_there(path: Path) -> bool:
    """Raises UsageError for what cannot be the name of a file: too long, or with a NUL in it."""
    try:
        if "\0" in str(path):  # which `exists` takes for a file that is not there
            raise ValueError("embedded null byte")
        return path.exists()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{shown(path, 80)}: no such file or folder ({reason})") from error


def _address_name(address: str) -> str:
    try:
        parts = urlsplit(address)
        return Path(parts.path).stem or parts.hostname or "stream"
    except ValueError as error:
        raise UsageError(f"{shown(address, 80)}: invalid URL ({in_brief(error)[:80]})") from error


def _lines(path: Path) -> list[str]:
    """The lines of a list in UTF-8, UTF-16, or in whatever bytes the names of files have."""
    content = read_text_file(path, MOST_BYTES)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace").splitlines()
    if not any(content[1:400:2]) and content[1:]:  # UTF-16 of Latin letters, without the mark that should be there
        return content.decode("utf-16-le", "replace").splitlines()
    lines = content.removeprefix(codecs.BOM_UTF8).splitlines()
    return [_line(path.parent, line) for line in lines]


def _line(folder: Path, line: bytes) -> str:
    """A name in UTF-8, else as the bytes that the disk has, else in Latin-1, as Windows and old programs write."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        as_bytes = os.fsdecode(line.strip())
    with suppress(OSError):  # a name that is too long
        if b"\0" not in line and (folder / as_bytes).exists():
            return as_bytes
    return line.decode("cp1252", "replace")


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
            inner = (here / name).relative_to(folder).with_suffix("").as_posix()
            yield str(here / name), inner if "/" in inner else _clean(inner)
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
    return _RESERVED.sub(r"\g<0>-clip", name.lstrip(".")) or "clip"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
