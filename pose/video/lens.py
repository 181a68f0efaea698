"""Focal length (35 mm equivalent) from the metadata of images and videos.

JPEG, PNG, WebP, TIFF and HEIC images store the focal length in EXIF (CIPA DC-008: FocalLengthIn35mmFilm). Videos from
Apple cameras store it in the metadata of the file or, usually, of the track (QuickTime File Format: `meta`, `keys`,
`ilst`). Files are read directly, because FFmpeg does not read the metadata of tracks. Only small parts of files are
read, and damaged metadata is ignored.
"""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_FOCAL, _EXIF = 0xA405, 0x8769
_WIDTH, _HEIGHT = 0xA002, 0xA003  # px of the original image
_APPLE = b"com.apple.quicktime.camera.focal_length.35mm_equivalent"
_HEIC = {
    b"heic",
    b"heix",
    b"heim",
    b"heis",
    b"mif1",
    b"msf1",
}  # brands of image files that have the structure of movies
_ANY = range(5, 2001)  # mm, accepted focal lengths
_MAX_METADATA_BYTES = 1 << 20
_MAX_RATIO_ERROR = 0.02  # maximum relative difference of aspect ratios of an uncropped image


def focal_35mm(path: Path, size: tuple[int, int]) -> float | None:
    """Return the 35 mm equivalent focal length of an uncropped image or video in mm; None if unknown."""
    try:
        with path.open("rb") as file:
            head = file.read(12)
            if head[4:8] == b"ftyp" and head[8:12] in _HEIC:
                tiff = _of_heic(path)
                found = _of_tiff(tiff, size) if tiff else None
            elif head[4:8] == b"ftyp":
                found = _of_movie(file, path.stat().st_size)
            else:
                tiff = _exif(file, head)
                found = _of_tiff(tiff, size) if tiff else None
    except (OSError, struct.error, LookupError, ValueError):
        return None
    return found if found is not None and int(found) in _ANY else None


def _exif(file: IO[bytes], head: bytes) -> bytes:
    """Return the TIFF structure of an image's EXIF data; empty without EXIF."""
    if head[:2] == b"\xff\xd8":
        return _of_jpeg(file)
    if head[:8] == b"\x89PNG\r\n\x1a\n":
        return next((_piece(file, size) for kind, size in _chunks(file, 8, ">I4s", 4) if kind == b"eXIf"), b"")
    if head[:4] == b"RIFF":
        found = next((_piece(file, size) for kind, size in _chunks(file, 12, "<4sI", 0) if kind == b"EXIF"), b"")
        return found.removeprefix(b"Exif\0\0")
    if head[:4] in (b"II*\0", b"MM\0*"):
        file.seek(0)
        return file.read(_MAX_METADATA_BYTES)
    return b""


def _of_heic(path: Path) -> bytes:
    """Return the TIFF structure of the EXIF data of a HEIC image, read with pillow-heif; empty without EXIF."""
    import pillow_heif

    try:
        exif = pillow_heif.open_heif(path).info.get("exif") or b""
    except (OSError, ValueError, RuntimeError, EOFError, SyntaxError):
        return b""
    return bytes(exif[:_MAX_METADATA_BYTES]).removeprefix(b"Exif\0\0")


def _of_jpeg(file: IO[bytes]) -> bytes:
    file.seek(2)
    while True:
        mark, kind, size = struct.unpack(">BBH", file.read(4))
        if mark != 0xFF or kind in (0xDA, 0xD9):  # the image data begins
            return b""
        body = file.read(size - 2)
        if kind == 0xE1 and body.startswith(b"Exif\0\0"):
            return body[6:]


def _chunks(file: IO[bytes], place: int, form: str, after: int) -> Iterator[tuple[bytes, int]]:
    """Yield the type and size of each chunk from `place` on, with the file positioned at its content."""
    while True:
        file.seek(place)
        one, other = struct.unpack(form, file.read(8))
        kind, size = (one, other) if isinstance(one, bytes) else (other, one)
        yield kind, size
        place += 8 + size + after + (size % 2 if not after else 0)  # RIFF pads chunks to even sizes


def _piece(file: IO[bytes], size: int) -> bytes:
    return file.read(min(size, _MAX_METADATA_BYTES))


def _of_tiff(tiff: bytes, size: tuple[int, int]) -> float | None:
    order = {b"II": "<", b"MM": ">"}[tiff[:2]]
    (first,) = struct.unpack_from(f"{order}I", tiff, 4)
    main = _entries(tiff, order, first)
    if _EXIF not in main:
        return None
    tags = _entries(tiff, order, main[_EXIF])
    width, height = tags.get(_WIDTH), tags.get(_HEIGHT)
    if width and height:
        ratio = max(width, height) / min(width, height) * min(size) / max(size)  # independent of the orientation
        if abs(ratio - 1) > _MAX_RATIO_ERROR:
            return None
    focal = tags.get(_FOCAL)
    return float(focal) if focal else None


def _entries(tiff: bytes, order: str, place: int) -> dict[int, int]:
    """Return the entries of a TIFF directory that have a single integer value, by tag."""
    (count,) = struct.unpack_from(f"{order}H", tiff, place)
    entries = {}
    for number in range(count):
        tag, kind, many, long = struct.unpack_from(f"{order}HHII", tiff, place + 2 + 12 * number)
        (short,) = struct.unpack_from(f"{order}H", tiff, place + 10 + 12 * number)
        if many == 1 and kind in (3, 4):
            entries[tag] = short if kind == 3 else long
    return entries


def _of_movie(file: IO[bytes], size: int) -> float | None:
    """Return the focal length in the metadata of the file, else in that of a track; None without one."""
    for kind, first, end in _boxes(file, 0, size):
        if kind == b"moov":
            inner = [(a, b) for name, a, b in _boxes(file, first, end) if name in (b"udta", b"trak")]
            places = [(first, end), *inner]
            for inside in places:
                for name, a, b in _boxes(file, *inside):
                    if name == b"meta" and (found := _of_meta(file, a, b)) is not None:
                        return found
    return None


def _of_meta(file: IO[bytes], first: int, end: int) -> float | None:
    file.seek(first)
    if file.read(8)[4:] not in (b"hdlr", b"keys", b"ilst"):  # ISO format: a version precedes the boxes
        first += 4
    keys, values = list[bytes](), dict[int, bytes]()
    for kind, a, b in _boxes(file, first, end):
        file.seek(a)
        body = file.read(min(b - a, _MAX_METADATA_BYTES))
        if kind == b"keys":
            place = 8
            while place + 8 <= len(body):
                (size,) = struct.unpack_from(">I", body, place)
                keys.append(body[place + 8 : place + size])
                place += max(size, 8)
        elif kind == b"ilst":
            for item, c, d in _boxes(file, a, b):
                file.seek(c)
                values[int.from_bytes(item, "big")] = file.read(min(d - c, 256))
    if _APPLE not in keys:
        return None
    data = values.get(keys.index(_APPLE) + 1, b"")  # a box: size, "data", type, locale, value
    (kind_of,) = struct.unpack_from(">I", data, 8)
    value = data[16 : int.from_bytes(data[:4], "big")]
    if kind_of == 1:  # text, such as 26 or 50.00mm
        number = re.match(rb"[0-9.]+", value)
        return float(number[0]) if number else None
    if kind_of in (23, 24):
        return float(struct.unpack(">f" if kind_of == 23 else ">d", value)[0])
    return float(int.from_bytes(value, "big"))


def _boxes(file: IO[bytes], place: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Yield the type of each box from `place` to `end`, and the positions of the start and the end of its content."""
    while place + 8 <= end:
        file.seek(place)
        size, kind = struct.unpack(">I4s", file.read(8))
        first = place + 8
        if size == 1:
            (size,) = struct.unpack(">Q", file.read(8))
            first += 8
        last = end if size == 0 else min(place + size, end)
        if last < first:
            return
        yield kind, first, last
        place = last
