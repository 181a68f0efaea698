"""C3D: joints, heels and toes as points, for motion capture programs. The points are little-endian floats.

The library `ezc3d` is not used: it holds all frames in memory, and it drops frames beyond 65,535 when it reads a file.
The tests read the files with ezc3d and py-c3d. A missing point has coordinates 0 and residual -1, since NaN is not
portable. Foot contacts are in the group EVENT. Beyond 255 events, further parameters follow whose names end with 2, 3,
...; the format does the same for point labels. Source: Motion Lab Systems, The C3D File Format: A Technical User Guide.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.body.soles import marker_names, marker_spans
from pose.body.tracks import Track
from pose.export.events import ExportEvent, foot_events
from pose.export.format import Notes, PersonFormat, missing, timing
from pose.utils.whole_file import whole_file

MAX_HEADER_FRAMES = 65_535  # maximum in the header; longer files use TRIAL:ACTUAL_END_FIELD
BLOCK = 512  # bytes
_INTEL = 84
_TEXT, _INTEGER, _FLOAT = -1, 2, 4
MAX_EVENTS = 2040  # maximum that fits into the parameter blocks
_MAX_ENTRIES = 255  # maximum entries of one parameter
_Value = str | list[str] | int | float | tuple[int, ...] | NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Points:
    """What the header says about the points."""

    names: Sequence[str]
    y_screen: str  # axis that points up on a screen
    frames: int
    rate: float  # frames/s
    first: int  # number of the first frame


def write(track: Track, target: Path, others: Sequence[ExportEvent] = ()) -> Notes:
    """Write the track of one person to `target`, with its foot events and `others`."""
    assert track.rate is not None, "C3D has one rate"
    first = _first(track)
    events = sorted([*foot_events(track), *others], key=lambda event: event.time)
    offset = (first - 1) / track.rate - float(track.times[0])  # s, from video time to file time
    names = marker_names(track)
    with whole_file(target) as hidden, hidden.open("wb") as file:
        header = _Points(names, "+Z" if track.recording.z_up else "+Y", len(track), track.rate, first)
        file.write(_head(header, _events(events, offset, f"person{track.person}")))
        for _, points in marker_spans(track, names, z_up=track.recording.z_up):
            known = np.isfinite(points).all(axis=-1)
            cells = np.zeros((*known.shape, 4), "<f4")
            cells[~known, 3] = -1
            cells[known, :3] = 1000 * points[known]
            file.write(cells.tobytes())
        # Readers read longer recordings up to the end of the file, so padding could look like a frame.
        if len(track) < MAX_HEADER_FRAMES:
            file.write(bytes(-file.tell() % BLOCK))
    long = (
        [f"more than {MAX_HEADER_FRAMES} frames: some programs read only that many"]
        if len(track) > MAX_HEADER_FRAMES
        else []
    )
    if len(events) > MAX_EVENTS:
        long.append(f"more than {MAX_EVENTS} events: the first are in the file")
    count = min(len(events), MAX_EVENTS)
    notes = [f"{count} {'event' if count == 1 else 'events'}"] if events else []
    return [f"{timing(track)}; millimetres", *notes, *missing(track), *long]


def _first(track: Track) -> int:
    """Return the number of the first frame (frame 1 is at 0 s); 1 if the last would exceed the header's range."""
    assert track.rate is not None
    first = max(0, round(float(track.times[0]) * track.rate)) + 1
    return first if first + len(track) - 1 <= MAX_HEADER_FRAMES else 1


def _events(events: list[ExportEvent], offset: float, subject: str) -> dict[str, _Value]:
    """Return the parameters of the group EVENT; `offset` (s) is file time minus video time."""
    events = events[:MAX_EVENTS]
    group: dict[str, _Value] = {"USED": len(events)}
    for start in range(0, len(events), _MAX_ENTRIES):
        part, mark = (
            events[start : start + _MAX_ENTRIES],
            "" if start == 0 else str(start // _MAX_ENTRIES + 1),
        )
        minutes, seconds = np.divmod([event.time + offset for event in part], 60)
        group |= {
            f"CONTEXTS{mark}": [event.side for event in part],
            f"LABELS{mark}": [event.label for event in part],
            f"SUBJECTS{mark}": [subject] * len(part),
            f"TIMES{mark}": np.stack([minutes, seconds], axis=1).astype(np.float32),
        }
    return group


def _head(points: _Points, events: dict[str, _Value]) -> bytes:
    """Return the header block and the parameter blocks."""
    blocks = -(-len(_parameters(points, 0, events)) // BLOCK)
    parameters = _parameters(points, 2 + blocks, events)
    last = points.first + min(points.frames, MAX_HEADER_FRAMES) - 1
    count = struct.pack("<4B", 1, 0x50, blocks, _INTEL)
    header = struct.pack(
        "<BBHHHHHfHHf", 2, 0x50, len(points.names), 0, points.first, last, 0, -1.0, 2 + blocks, 0, points.rate
    )  # a negative scale means that points are floats
    return header.ljust(BLOCK, b"\0") + (count + parameters[4:]).ljust(blocks * BLOCK, b"\0")


def _parameters(points: _Points, data_start: int, events: dict[str, _Value]) -> bytes:
    """Return the parameter section: its header of four bytes, then all groups."""
    point: dict[str, _Value] = {
        "USED": len(points.names), "FRAMES": min(points.frames, MAX_HEADER_FRAMES), "DATA_START": data_start,
        "SCALE": -1.0, "RATE": points.rate, "UNITS": "mm", "LABELS": list(points.names),
        "DESCRIPTIONS": list(points.names), "X_SCREEN": "+X", "Y_SCREEN": points.y_screen,
    }  # fmt: skip
    if points.frames > MAX_HEADER_FRAMES:
        point["LONG_FRAMES"] = float(points.frames)
    last = points.first + points.frames - 1
    groups: dict[str, dict[str, _Value]] = {
        "POINT": point,
        "ANALOG": {"USED": 0, "RATE": 0.0, "GEN_SCALE": 1.0},
        "TRIAL": {"ACTUAL_START_FIELD": (points.first, 0), "ACTUAL_END_FIELD": (last & 0xFFFF, last >> 16)},
    }
    groups |= {"EVENT": events} if events["USED"] else {}
    records = bytearray(4)
    for number, (name, values) in enumerate(groups.items(), start=1):
        records += _record(name, -number, b"\0")
        for key, value in values.items():
            records += _record(key, number, _packed(value) + b"\0")
    return bytes(records + b"\0\0")


def _record(name: str, group: int, rest: bytes) -> bytes:
    """Return the bytes of a group or parameter; the number is negative for a group's own record."""
    return struct.pack("<bb", len(name), group) + name.encode("ascii") + struct.pack("<h", 2 + len(rest)) + rest


def _packed(value: _Value) -> bytes:
    """Return the type, dimensions and values of a parameter as bytes."""
    if isinstance(value, str):
        return struct.pack("<bBB", _TEXT, 1, len(value)) + value.encode("ascii")
    if isinstance(value, list):
        width = max(map(len, value))
        texts = "".join(text.ljust(width) for text in value)
        return struct.pack("<bBBB", _TEXT, 2, width, len(value)) + texts.encode("ascii")
    if isinstance(value, np.ndarray):
        return struct.pack("<bBBB", _FLOAT, 2, *value.shape[::-1]) + value.astype("<f4").tobytes()
    if isinstance(value, float):
        return struct.pack("<bBf", _FLOAT, 0, value)
    if isinstance(value, int):
        return struct.pack("<bBH", _INTEGER, 0, value)
    return struct.pack(f"<bBB{len(value)}H", _INTEGER, 1, len(value), *value)


FORMAT = PersonFormat(".c3d", write, options=("z_up",))
