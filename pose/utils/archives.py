"""Safe reading of untrusted ZIP and NPZ files: no code execution, no hangs, bounded memory.

Members may be uncompressed, or compressed with deflate or LZMA. Their total uncompressed size is limited to 256 MiB or
50 times the size of the file, whichever is larger. NumPy arrays may contain numbers and strings, but no Python objects.
All other content raises a PoseError with a message of one line.
"""

import io
import lzma
import math
import mmap
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError
from pose.utils.shown import in_brief
from pose.utils.whole_file import file_errors, whole_file

Array = NDArray[np.generic]  # of any dtype
ALLOWED_BYTES = 256 << 20  # total uncompressed size that is allowed for every file
MAX_RATIO = 50  # total uncompressed size that is allowed, as a multiple of the size of the file
CHUNK = 1 << 20
KINDS = "?biufcUS"  # NumPy dtype kinds: booleans, numbers, strings
MIN_MAPPED_BYTES = 1 << 16  # minimum size of arrays that are memory-mapped
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA}
_UNPACKING = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError)  # raised for damaged members
_ENCRYPTED = 1  # flag bit of an encrypted member
_LOCAL_HEADER = 30  # bytes of a member header before the name; the last four are the lengths of name and extra field
_START = 10  # bytes of an array before its header: magic, version, and in version 1 the length of the header
_MAX_HEADER = 10_000  # bytes, the limit of NumPy
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class Archive:
    """An open ZIP file."""

    # Names of members are not trustworthy, so do not use them as paths.

    def __init__(self, file: IO[bytes], zipped: zipfile.ZipFile, label: str) -> None:
        """Read the list of members."""
        self.label = label  # name of the file in error messages
        self.names = zipped.namelist()  # names of the members. They are not trustworthy, so do not use them as paths
        self._file, self._zip = file, zipped
        self._remaining_bytes = max(ALLOWED_BYTES, MAX_RATIO * file.seek(0, io.SEEK_END))

    def size(self, name: str) -> int:
        """Return the uncompressed size in bytes that the file states for a member, which may be wrong."""
        return self._zip.getinfo(name).file_size

    def _check_member(self, name: str) -> None:
        """Check that a member is supported and that the limit on the total size is not exceeded."""
        info = self._zip.getinfo(name)
        if info.flag_bits & _ENCRYPTED:
            raise PoseError(f"{self.label}: member {name} is encrypted; unpack it and give the folder or the file")
        if info.compress_type not in _METHODS:
            raise PoseError(
                f"{self.label}: member {name} uses an unsupported compression method ({info.compress_type})"
            )
        self._remaining_bytes -= info.file_size
        if self._remaining_bytes < 0:
            raise PoseError(
                f"{self.label}: unpacks to more than {MAX_RATIO} times its size and {ALLOWED_BYTES >> 20} MiB; "
                "unpack it yourself if you trust it"
            )

    @contextmanager
    def stream(self, name: str) -> Iterator[IO[bytes]]:
        """Return a context manager that opens the member `name` for reading and yields a binary stream."""
        self._check_member(name)
        with _archive_errors(self.label), self._zip.open(name) as stream:
            yield stream

    def read(self, name: str) -> bytes:
        """Return the content of the member `name`."""
        with self.stream(name) as stream:
            return stream.read()

    def content_offset(self, name: str) -> int | None:
        """Return the position in the file, in bytes, of the content of a member; None if the member is compressed."""
        info = self._zip.getinfo(name)
        if info.compress_type != zipfile.ZIP_STORED:
            return None
        with _archive_errors(self.label):
            self._file.seek(info.header_offset + _LOCAL_HEADER - 4)
            lengths = struct.unpack("<HH", self._file.read(4))
        result: int | None = info.header_offset + _LOCAL_HEADER + sum(lengths)
        return result


@contextmanager
def open_archive(source: Path | IO[bytes], label: str | None = None) -> Iterator[Archive]:
    """Return a context manager that yields the `Archive` of a ZIP file; PoseError if it is damaged."""
    label = label or str(source)
    with ExitStack() as stack:
        with file_errors(label), _archive_errors(label):
            file = stack.enter_context(source.open("rb")) if isinstance(source, Path) else source
            archive = Archive(file, stack.enter_context(zipfile.ZipFile(file)), label)
        yield archive


class Arrays(Mapping[str, Array]):
    """Mapping from the names of the arrays in an open .npz file to the arrays, each of which is read on access."""

    def __init__(self, path: Path, archive: Archive) -> None:
        self._path, self._archive = path, archive
        self._members = {name.removesuffix(".npy"): name for name in archive.names if name.endswith(".npy")}

    def __getitem__(self, name: str) -> Array:
        member = self._members[name]
        with file_errors(self._path), self._archive.stream(member) as stream:
            return _read_array(stream, self._archive.size(member), f"{self._path}: array {name!r}")

    def stream(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """Return a context manager that opens the .npy file of an array and yields a binary stream."""
        return self._archive.stream(self._members[name])

    def mapped(self, name: str) -> Array:
        """Return a read-only memory map of an array, or the array itself if it is compressed or smaller than 64 KiB."""
        member = self._members[name]
        size, start = self._archive.size(member), self._archive.content_offset(member)
        if size < MIN_MAPPED_BYTES or start is None:
            return self[name]
        path = self._path
        label = f"{path}: array {name!r}"
        with file_errors(path), _archive_errors(path), path.open("rb") as file:
            file.seek(start)
            shape, fortran, dtype = _read_header(file, start + size, label)
            offset = file.tell()
            if offset + math.prod(shape) * dtype.itemsize > path.stat().st_size or 0 in shape:
                return self[name]
            return np.memmap(path, dtype, "r", offset, shape, "F" if fortran else "C")

    def __contains__(self, name: object) -> bool:
        return name in self._members  # the inherited method would read the array

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


@contextmanager
def open_arrays(path: Path) -> Iterator[Arrays]:
    """Return a context manager that yields the arrays of an .npz file; PoseError if damaged or of objects."""
    with file_errors(path), path.open("rb") as file:
        start = file.read(len(np.lib.format.MAGIC_PREFIX))
    if start == np.lib.format.MAGIC_PREFIX:
        raise PoseError(f"{path}: contains a single array; expected an .npz file with named arrays")
    if not zipfile.is_zipfile(path):
        raise PoseError(f"{path}: not a readable .npz file")
    with open_archive(path) as archive:
        yield Arrays(path, archive)


def release(*arrays: Array) -> None:
    """Release the physical memory of memory-mapped arrays. Later accesses read the data from disk again."""
    for array in arrays:
        mapped = getattr(array, "_mmap", None)
        if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)


def format_names(names: Iterable[str]) -> str:
    """Format names for an error message: at most eight names, of at most 40 characters each."""
    first_names = [name if len(name) <= 40 else f"{name[:40]}..." for name in islice(names, 9)]
    return ", ".join(first_names[:8]) + (", ..." if len(first_names) > 8 else "") if first_names else "nothing"


def write_arrays(target: Path, arrays: Mapping[str, Array], *, compressed: bool = False) -> None:
    """Write an .npz file atomically; PoseError if the file cannot be written."""
    save: Callable[..., None] = np.savez_compressed if compressed else np.savez
    with whole_file(target) as hidden, hidden.open("wb") as file:
        save(file, **arrays)


def load_array(path: Path) -> Array:
    """Read an .npy file; PoseError if the file is not a valid .npy file, or contains Python objects."""
    with file_errors(path), _archive_errors(path), path.open("rb") as file:
        return _read_array(file, path.stat().st_size, str(path))


def read_header(stream: IO[bytes], label: str) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """Return shape, Fortran order and dtype of an .npy header; PoseError if it is invalid."""
    start = stream.read(_START)
    width = 4 if start[6:7] == b"\x02" else 2  # bytes of the header length
    start += stream.read(width - 2)
    length = int.from_bytes(start[8 : 8 + width], "little")
    if length > _MAX_HEADER:
        raise PoseError(f"{label}: not a readable NumPy array")
    text = io.BytesIO(start + stream.read(length))
    try:
        version = np.lib.format.read_magic(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of Python's parser about damaged headers
            shape, fortran, dtype = _HEADERS[version](text)
    except Exception as error:  # the header is a Python expression, so a damaged one can raise nearly anything
        raise PoseError(f"{label}: not a readable NumPy array") from error
    if not all(type(length) is int and length >= 0 for length in shape):
        raise PoseError(f"{label}: its header gives the invalid shape {shape}")
    return shape, fortran, dtype


def _read_header(stream: IO[bytes], end: int, label: str) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """Read a header like `read_header`, and check that the array is complete and contains numbers or strings."""
    shape, fortran, dtype = read_header(stream, label)
    if dtype.hasobject:
        raise PoseError(f"{label} contains pickled objects, which can run code; save plain arrays instead")
    if dtype.kind not in KINDS or (dtype.itemsize == 0 and math.prod(shape) > 1):
        raise PoseError(f"{label} contains values of type {dtype}; expected numbers or strings")
    if math.prod(shape) * dtype.itemsize > end - stream.tell():
        raise PoseError(f"{label} is truncated: its header specifies the shape {shape}")
    return shape, fortran, dtype


def _read_array(stream: IO[bytes], end: int, label: str) -> Array:
    shape, fortran, dtype = _read_header(stream, end, label)
    array: Array = np.zeros(math.prod(shape), dtype)
    if array.nbytes:
        rest = array.view(np.uint8).data
        while len(rest):
            if not (chunk := stream.read(min(CHUNK, len(rest)))):
                raise EOFError("it is truncated")
            rest[: len(chunk)] = chunk
            rest = rest[len(chunk) :]
        stream.read(1)  # zipfile checks the checksum at the end of a member
    return array.reshape(shape, order="F" if fortran else "C")


@contextmanager
def _archive_errors(path: Path | str) -> Iterator[None]:
    """Return a context manager that converts exceptions from malformed archives to one-line PoseErrors."""
    try:
        yield
    except _UNPACKING as error:
        raise PoseError(f"{path}: not a ZIP file, or a damaged one ({in_brief(error)})") from error
    except (
        struct.error, ValueError, IndexError, OverflowError, RuntimeError, MemoryError,
    ) as error:  # fmt: skip
        raise PoseError(f"{path}: damaged ({in_brief(error)})") from error
