"""Whether a video file was cut off, according to the sizes and the trailer that its container declares.

Sources: RFC 8794 and RFC 9559 (Matroska, WebM), the GIF89a specification, Microsoft's RIFF (AVI, WebP), ISO/IEC
14496-12 (MP4), ISO/IEC 11172-1 and 13818-1 (program and transport streams), and Adobe's FLV specification.
"""

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import IO

_PACKET_BYTES, _SYNC = 188, 0x47  # of transport streams
_TAIL_PACKETS = 20_000  # packets at the end in which the last unit of each stream begins
_PACK, _PROGRAM_END = b"\0\0\1\xba", b"\0\0\1\xb9"  # start codes of program streams
_MAX_PACK_BYTES = 1 << 17
_SEGMENT = 0x18538067
_UNKNOWN_RIFF_SIZES = (0, 0xFFFFFFFF)  # of writers that cannot seek


def is_cut_off(path: Path) -> bool:
    """Return whether a file ends before its container does; False if its format does not tell."""
    try:
        with path.open("rb") as file:
            head, size = file.read(12), os.fstat(file.fileno()).st_size
            check = _check_of(head)
            return check is not None and check(file, size)
    except (OSError, struct.error):
        return False


def _check_of(head: bytes) -> Callable[[IO[bytes], int], bool] | None:
    if head[4:8] == b"ftyp":
        return _mp4
    if head[:1] == b"G" and head[:4] != b"GIF8":
        return _transport_stream
    starts = {b"\x1a\x45\xdf\xa3": _matroska, b"GIF8": _gif, b"RIFF": _riff, b"FLV\x01": _flv, _PACK: _program_stream}
    return starts.get(head[:4])


def _matroska(file: IO[bytes], size: int) -> bool:
    place = 0
    while place < size:
        file.seek(place)
        element, length, start = _number(file, keep_marker=True), _number(file), file.tell()
        if element is None or length is None:  # a size that is not known, as in live streams
            return False
        if element == _SEGMENT:
            return start + length > size
        place = start + length
    return True


def _number(file: IO[bytes], *, keep_marker: bool = False) -> int | None:
    """Read an EBML number of variable length; None if it is reserved (an unknown size) or missing."""
    first = file.read(1)
    if not first or first == b"\0":
        return None
    length = 9 - first[0].bit_length()
    data = first + file.read(length - 1)
    value, marker = int.from_bytes(data, "big"), 1 << (7 * length)
    if len(data) < length or (not keep_marker and value == 2 * marker - 1):
        return None
    return value if keep_marker else value - marker


def _gif(file: IO[bytes], size: int) -> bool:
    file.seek(10)
    _skip(file, 2 + _palette_bytes(file.read(1)))
    while file.tell() < size:
        kind = file.read(1)
        if kind == b";":
            return False
        if kind == b",":
            _skip(file, 8)
            _skip(file, _palette_bytes(file.read(1)) + 1)
        elif kind == b"!":
            _skip(file, 1)
        else:
            return False  # not a GIF as specified
        while (block := file.read(1)) not in (b"", b"\0"):
            _skip(file, block[0])
    return True


def _palette_bytes(flags: bytes) -> int:
    return 3 << ((flags[0] & 7) + 1) if flags and flags[0] & 0x80 else 0


def _skip(file: IO[bytes], count: int) -> None:
    file.seek(count, os.SEEK_CUR)


def _riff(file: IO[bytes], size: int) -> bool:
    place = 0
    while place + 8 <= size:  # large AVI files consist of several parts
        file.seek(place)
        kind, length = struct.unpack("<4sI", file.read(8))
        if kind != b"RIFF" or length in _UNKNOWN_RIFF_SIZES:
            return False
        place += 8 + length + length % 2
        if place - length % 2 > size:
            return True
    return False


def _mp4(file: IO[bytes], size: int) -> bool:
    place = 0
    while place + 8 <= size:
        file.seek(place)
        length, kind = struct.unpack(">I4s", file.read(8))
        if length == 1:
            (length,) = struct.unpack(">Q", file.read(8))
        if length < 8:  # 0: up to the end of the file
            return False
        place += length
        if kind in (b"mdat", b"moov") and place > size:
            return True
    return False


def _transport_stream(file: IO[bytes], size: int) -> bool:
    """Return whether the last packet is incomplete, or the last unit of sound or video that states its length."""
    # A stream states no length of its own: one that was cut between two units looks complete.
    file.seek(0)
    if set(file.read(5 * _PACKET_BYTES)[::_PACKET_BYTES]) != {_SYNC}:
        return False
    if size % _PACKET_BYTES != 0:
        return True
    missing: dict[int, int] = {}  # bytes that the last unit of each stream lacks
    file.seek(max(0, size - _TAIL_PACKETS * _PACKET_BYTES))
    while packet := file.read(_PACKET_BYTES):
        stream = int.from_bytes(packet[1:3], "big") & 0x1FFF
        flags = packet[3] >> 4 & 3
        start = 4 if not flags & 2 else min(5 + packet[4], _PACKET_BYTES)
        content = packet[start:] if flags & 1 else b""
        if packet[1] & 0x40 and content[:3] == b"\0\0\1":
            length = int.from_bytes(content[4:6], "big")
            missing[stream] = length - (len(content) - 6) if length else 0  # 0: not stated, as usual for video
        elif stream in missing:
            missing[stream] -= len(content)
    return any(count > 0 for count in missing.values())


def _program_stream(file: IO[bytes], size: int) -> bool:
    """Return whether the last packet of the last pack is incomplete; cut between two, a stream looks complete."""
    file.seek(max(0, size - _MAX_PACK_BYTES))
    tail = file.read()
    place = tail.rfind(_PACK)
    if place < 0:
        return False
    head = tail[place : place + 14]
    if len(head) < 14:
        return True
    place += 12 if head[4] & 0xF0 == 0x20 else 14 + (head[13] & 7)  # MPEG-1, MPEG-2
    while place < len(tail):
        start = tail[place : place + 6]
        if start[:4] == _PROGRAM_END:
            return False
        if len(start) < 6:
            return any(start)
        if start[:3] != b"\0\0\1":
            return False  # not as specified, such as padding of zeros
        place += 6 + int.from_bytes(start[4:], "big")
    return place > len(tail)


def _flv(file: IO[bytes], size: int) -> bool:
    """Return whether the last tag is incomplete. Its size stands before and after its content."""
    file.seek(max(0, size - 4))
    (length,) = struct.unpack(">I", file.read(4))
    if not 11 <= length <= size - 17:
        return True
    file.seek(size - 4 - length)
    head = file.read(4)
    return head[0] & 0x1F not in (8, 9, 18) or int.from_bytes(head[1:], "big") + 11 != length
