"""Arrays of an .npz file that stay on the disk."""

import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGE = 1 << 16  # bytes of an array that is worth mapping
_LOCAL_HEADER = 30  # bytes of a ZIP member before its name; the last four are the lengths of name and extra field


def mapped_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The large arrays of an .npz file where they lie in it; only those that it holds uncompressed."""
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as stream:
        for info in archive.infolist():
            if info.compress_type != zipfile.ZIP_STORED or info.file_size < _LARGE:
                continue
            stream.seek(info.header_offset + _LOCAL_HEADER - 4)
            name, extra = struct.unpack("<HH", stream.read(4))
            stream.seek(name + extra, 1)
            version = np.lib.format.read_magic(stream)
            read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            if version not in read:
                continue
            shape, fortran, dtype = read[version](stream)
            if not dtype.hasobject and not fortran and 0 not in shape:
                place = stream.tell()
                arrays[info.filename.removesuffix(".npy")] = np.memmap(path, dtype, "r", offset=place, shape=shape)
    return arrays
