"""Parts of glTF 2.0 files: the binary chunk, animations, and the container GLB.

Source: Khronos Group, glTF 2.0 Specification, 2021.
"""

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, NotRequired, TypedDict, cast

import numpy as np

from pose.utils.json_values import Json
from pose.utils.whole_file import whole_file

FLOAT, UINT16, UINT8 = 5126, 5123, 5121
VERTICES, INDICES = 34962, 34963
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}
XYZW = [1, 2, 3, 0]  # glTF's quaternions are x y z w
_BYTES = {FLOAT: 4, UINT16: 2, UINT8: 1}


class Accessor(TypedDict):
    """An accessor of glTF: a typed view of the buffer."""

    bufferView: NotRequired[int]  # index of the buffer view; zeros without
    componentType: int
    count: int
    type: str  # type of the `count` elements, such as "VEC3"
    min: NotRequired[list[float]]
    max: NotRequired[list[float]]
    sparse: NotRequired[dict[str, object]]


class Buffer:
    """The binary chunk (BIN) of a file. Space is allocated first, then filled in any order."""

    def __init__(self, size: int = 0, views: int = 0, accessors: int = 0) -> None:
        """Append to a chunk of `size` bytes, to which that number of buffer views and accessors refers."""
        self.size = size
        self.views: list[dict[str, int]] = []
        self.accessors: list[Accessor] = []
        self.fixed: dict[int, np.ndarray] = {}
        self.placed: list[tuple[int, np.ndarray]] = []  # position in the chunk, and values
        self._first_view, self._first = views, accessors

    def add(self, count: int, kind: str, component: int = FLOAT, target: int | None = None) -> int:
        """Allocate space for `count` elements and return the index of their accessor."""
        length = count * WIDTHS[kind] * _BYTES[component]
        view = {"buffer": 0, "byteOffset": self.size, "byteLength": length}
        self.views.append(view if target is None else view | {"target": target})
        at = self._first_view + len(self.views) - 1
        self.accessors.append({"bufferView": at, "componentType": component, "count": count, "type": kind})
        self.size += -(-length // 4) * 4
        return self._first + len(self.accessors) - 1

    def keep(self, values: np.ndarray, kind: str, component: int = FLOAT, target: int | None = None) -> int:
        """Allocate space for values that are already known, store them, and return the index of their accessor."""
        accessor = self.add(values.size // WIDTHS[kind], kind, component, target)
        self.fixed[accessor] = values
        return accessor

    def keep_with_range(self, values: np.ndarray, kind: str, target: int | None = None) -> int:
        """Store floats as `keep` does, and add their minimum and maximum to the accessor."""
        index = self.keep(values, kind, target=target)
        rows = values.reshape(-1, WIDTHS[kind])
        accessor = self.accessors[index - self._first]
        accessor["min"], accessor["max"] = rows.min(axis=0).tolist(), rows.max(axis=0).tolist()
        return index

    def keep_sparse(self, count: int, rows: np.ndarray, values: np.ndarray) -> int:
        """Store `count` vectors that are zero except in `rows` (n,), increasing, where they are `values` (n, 3)."""
        low, high = (edge(values, axis=0, initial=0.0).tolist() for edge in (np.min, np.max))
        accessor: Accessor = {"componentType": FLOAT, "count": count, "type": "VEC3", "min": low, "max": high}
        if len(rows):
            views = []
            for part in (rows.astype("<u2"), values.astype("<f4")):
                self.views.append({"buffer": 0, "byteOffset": self.size, "byteLength": part.nbytes})
                self.placed.append((self.size, part))
                self.size += -(-part.nbytes // 4) * 4
                views.append(self._first_view + len(self.views) - 1)
            indices = {"bufferView": views[0], "componentType": UINT16}
            accessor["sparse"] = {"count": len(rows), "indices": indices, "values": {"bufferView": views[1]}}
        self.accessors.append(accessor)
        return self._first + len(self.accessors) - 1

    def offset(self, accessor: int) -> int:
        """Return the position of an accessor's values in the chunk, bytes."""
        return self.views[self.accessors[accessor - self._first]["bufferView"] - self._first_view]["byteOffset"]


class Animation:
    """An animation, to which channels are added."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.channels: list[dict[str, Json]] = []
        self.samplers: list[dict[str, Json]] = []

    def add(self, target: Mapping[str, Json], times: int, values: int, interpolation: str = "LINEAR") -> None:
        """Add a channel with the accessors of its times and values."""
        self.channels.append({"sampler": len(self.samplers), "target": dict(target)})
        self.samplers.append({"input": times, "output": values, "interpolation": interpolation})

    def document(self) -> dict[str, Json]:
        """Return the animation as an object of the file."""
        return {"name": self.name, "channels": self.channels, "samplers": self.samplers}

    def move(self, node: int, path: str, times: int, values: int, interpolation: str = "LINEAR") -> None:
        """Add a channel of a property of a node."""
        self.add({"node": node, "path": path}, times, values, interpolation)


def with_all(animations: list[Animation]) -> list[Animation]:
    """Return the animations that move something, after one of all: programs play the first of several."""
    moving = [animation for animation in animations if animation.channels]
    if len(moving) < 2:
        return moving
    everything = Animation("all")
    for animation in moving:
        shift = len(everything.samplers)
        everything.channels += [{**one, "sampler": cast(int, one["sampler"]) + shift} for one in animation.channels]
        everything.samplers += animation.samplers
    return [everything, *moving]


def write_glb(
    target: Path,
    document: Mapping[str, object],
    buffer: Buffer,
    start: bytes = b"",
    fill: Callable[[IO[bytes], int], None] = lambda file, begin: None,
) -> None:
    """Write a GLB file of a JSON chunk and a binary chunk, which begins with `start` further bytes.

    `fill` writes those to the open file; its second argument is where the chunk begins.
    """
    text = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    with whole_file(target) as hidden, hidden.open("wb") as file:
        file.write(struct.pack("<4sII", b"glTF", 2, 12 + 8 + len(text) + 8 + buffer.size))
        file.write(struct.pack("<I4s", len(text), b"JSON") + text)
        file.write(struct.pack("<I4s", buffer.size, b"BIN\0"))
        begin = file.tell()
        file.write(start)
        file.truncate(begin + buffer.size)  # fills the chunk with zeros, which pad the arrays
        kept = [(buffer.offset(accessor), values) for accessor, values in buffer.fixed.items()]
        for offset, values in [*kept, *buffer.placed]:
            file.seek(begin + offset)
            file.write(np.ascontiguousarray(values).tobytes())
        fill(file, begin)
