"""Search for the clips of a `pose-batch` call: their paths, names in the results, and shards."""

import codecs
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path
from urllib.parse import urlsplit

from pose.errors import UsageError
from pose.structures.defaults import RESULT_JSON, RESULT_NPZ
from pose.utils.json_values import read_text_file
from pose.utils.shown import in_brief, shown
from pose.video.images import SUFFIXES as PICTURES
from pose.video.images import WILDCARDS

_ENDINGS = "3gp asf avi flv gif m2ts m4v mkv mov mp4 mpeg mpg mts mxf ogv ts vob webm wmv"
VIDEOS = frozenset("." + name for name in _ENDINGS.split(" "))
LISTS = frozenset({".txt", ".lst"})
MAX_LIST_DEPTH = 8  # maximum nesting of lists
MAX_LIST_BYTES = 64 << 20  # maximum size of a list
_RESERVED = re.compile(r"^manifest.*\.jsonl$", re.IGNORECASE | re.DOTALL)  # files written by pose-batch itself
RESULTS = (RESULT_JSON, RESULT_NPZ)  # a folder with one of these is a result, not an input


@dataclass(frozen=True, slots=True)
class BatchClip:
    """One input of `pose-batch`: a video, a folder of images, or a group of videos from several cameras."""

    path: str  # path or URL of the input
    name: str  # name of the results folder of the clip, relative to the folder of all results, with / as separator
    videos: tuple[str, ...] = ()  # paths of the videos of a group; empty for other inputs

    def signature(self) -> list[int] | None:
        """Return file sizes and modification times, to detect changes quickly; None if unknown, as for URLs."""
        path = Path(self.path)
        try:
            if self.videos:
                files = [Path(video) for video in self.videos]
            else:
                files = [path] if path.is_file() else [one for one in path.iterdir() if one.is_file()]
            states = [one.stat() for one in files]
        except OSError:
            return None
        return [len(states), sum(one.st_size for one in states), max((one.st_mtime_ns for one in states), default=0)]


@dataclass(frozen=True, slots=True)
class _Search:
    """Settings of a search for clips."""

    out: Path  # resolved path of the results folder
    grouped: bool  # whether the videos in one folder are from several cameras that filmed the same scene


def find_clips(inputs: list[str], out: Path, *, grouped: bool = False) -> list[BatchClip]:
    """Find all clips in files, folders, patterns, URLs and list files, in order, without duplicates and results."""
    clips: dict[str, BatchClip] = {}  # by path
    for text in inputs:
        for clip in _clips_of_input(text, _Search(out.resolve(), grouped)):
            clips.setdefault(clip.path, clip)
    if not clips:
        for text in inputs:
            if Path(os.path.expanduser(text)).resolve().is_relative_to(out.resolve()):
                raise UsageError(f"no clips in {text}: those in --out are ignored; choose another folder with --out")
        raise UsageError(f"no clips in {', '.join(inputs)}; videos end in {', '.join(sorted(VIDEOS))}")
    names = _unique_names(list(clips), [clip.name for clip in clips.values()])
    return [replace(clip, name=name) for clip, name in zip(clips.values(), names, strict=True)]


def shard_of(clips: list[BatchClip], shard: tuple[int, int]) -> list[BatchClip]:
    """Return the clips of one of n shards, by a hash of the name, independent of the other clips."""
    index, count = shard
    return [clip for clip in clips if int(_hash(clip.name), 16) % count == index]


def read_shard(text: str) -> tuple[int, int]:
    """Parse the text `i/n`, and return the index i of a shard, from 0, and the number n of shards."""
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal()) or not int(index) < int(count):
        raise UsageError(
            f"--shard: invalid shard {shown(text, 60)!r}; expected I/N with I from 0 to N - 1, such as 0/4"
        )
    return int(index), int(count)


def _clips_of_input(given: str, search: _Search, within: tuple[Path, ...] = ()) -> Iterator[BatchClip]:
    """Yield the clips of one input; `within` are the list files that contain it, outermost first."""
    path = Path(os.path.expanduser(given))
    exists = _exists(path)
    if "://" in given and not exists:
        yield _single_video(given, _address_name(given), search)
    elif path.is_dir():
        yield from _clips_of_folder(path, search)
    elif path.suffix.lower() in LISTS and path.is_file():
        yield from _clips_of_list(path, search, within)
    elif exists:
        yield _single_video(str(path), path.stem, search)
    elif WILDCARDS.search(given):
        matches = sorted(glob(str(path), recursive=True))
        if not matches:
            raise UsageError(f"{shown(given)}: nothing matches")
        for match in matches:
            yield from _clips_of_input(match, search, within)
    else:
        raise UsageError(f"{shown(given)}: no such file or folder")


def _single_video(path: str, name: str, search: _Search) -> BatchClip:
    """Return the clip of a single video; as a group of one it fails with a message about missing cameras."""
    return BatchClip(path, _clean(name), (path,) if search.grouped else ())


def _clips_of_list(path: Path, search: _Search, within: tuple[Path, ...]) -> Iterator[BatchClip]:
    """Yield the clips of a list file: one input, or FILE, tab, GROUP of cameras, per line, relative to its folder."""
    # An input that does not exist is a clip that fails; other clips are processed.
    inner = (*within, path.resolve())
    if path.resolve() in within or len(inner) > MAX_LIST_DEPTH:
        raise UsageError(f"{path}: the list includes itself, or lists nest more than {MAX_LIST_DEPTH} deep")
    groups: dict[str, list[str]] = {}
    for line in _lines(path):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        file, _, group = (part.strip() for part in text.partition("\t"))
        if "\t" in text and group and not _exists(path.parent / text):
            groups.setdefault(group, []).append(str(path.parent / os.path.expanduser(file)))
            continue
        target = text if "://" in text else str(path.parent / os.path.expanduser(text))
        if "://" not in text and not _exists(Path(target)) and not WILDCARDS.search(text):
            yield _single_video(target, Path(target).stem, search)
        else:
            yield from _clips_of_input(target, search, inner)
    for group, videos in groups.items():
        yield BatchClip(f"{path}: {group}", _clean(re.sub(r"[^\w .-]", "_", group)), tuple(videos))


def _exists(path: Path) -> bool:
    """Return whether a path exists."""
    try:
        if "\0" in str(path):  # `exists` returns False for it
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
    """Return the lines of a list file, which is in UTF-8, in UTF-16, or in the encoding of file names."""
    content = read_text_file(path, MAX_LIST_BYTES)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace").splitlines()
    if not any(content[1:400:2]) and content[1:]:  # UTF-16 of Latin letters without a byte order mark
        return content.decode("utf-16-le", "replace").splitlines()
    lines = content.removeprefix(codecs.BOM_UTF8).splitlines()
    return [_line(path.parent, line) for line in lines]


def _line(folder: Path, line: bytes) -> str:
    """Decode a file name in a list file: as UTF-8, as the raw bytes of an existing file, else as Windows-1252."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        as_bytes = os.fsdecode(line.strip())
    with suppress(OSError):  # the name is too long
        if b"\0" not in line and (folder / as_bytes).exists():
            return as_bytes
    return line.decode("cp1252", "replace")


def _clips_of_folder(folder: Path, search: _Search) -> Iterator[BatchClip]:
    """Yield all videos in a folder at any depth, without results; with images alone it is one clip."""
    out = search.out
    for directory, folders, files in os.walk(folder):
        here = Path(directory)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and (here / name).resolve() != out)
        if here.resolve() == out or any(name in files for name in RESULTS):
            folders.clear()
            continue
        seen = sorted(name for name in files if not name.startswith("."))
        videos = [name for name in seen if Path(name).suffix.lower() in VIDEOS]
        inner = here.relative_to(folder).as_posix()
        results_name = _clean(here.resolve().name) if inner == "." else inner
        if search.grouped and videos:
            yield BatchClip(str(here), results_name, tuple(str(here / name) for name in videos))
            continue
        for name in videos:
            inner = (here / name).relative_to(folder).with_suffix("").as_posix()
            yield BatchClip(str(here / name), inner if "/" in inner else _clean(inner))
        if not search.grouped and not videos and any(Path(name).suffix.lower() in PICTURES for name in seen):
            yield BatchClip(str(here), results_name)


def _unique_names(paths: list[str], names: list[str]) -> list[str]:
    """Make names unique by adding the file extension if that suffices, and otherwise a hash of the path."""
    endings = [Path(path).suffix.lower().replace(".", "-") for path in paths]
    for marks in (endings, [f"-{_hash(path)[:8]}" for path in paths]):
        count = Counter(name.lower() for name in names)  # file systems may ignore case
        names = [name + mark if count[name.lower()] > 1 else name for name, mark in zip(names, marks, strict=True)]
    return names


def _clean(name: str) -> str:
    return _RESERVED.sub(r"\g<0>-clip", name.lstrip(".")) or "clip"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
