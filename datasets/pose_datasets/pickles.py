"""Restricted reader of pickle files that cannot run code of the file.

Public pose data is distributed as pickles, and a pickle can call any Python function. This reader accepts NumPy arrays,
scalars and types, and dicts, lists, tuples, sets, strings and bytes. It rejects everything else, and the error names
the rejected object.
"""

import pickle
from pathlib import Path
from typing import IO

import numpy as np

from pose.errors import PoseError
from pose.structures.types import Array
from pose.utils.archives import format_names, open_arrays, read_header


def load_pickle(path: Path) -> object:
    """Load a pickle file of arrays and plain containers."""
    with path.open("rb") as file:
        return _load(file, path)


def load_npz_object(path: Path, key: str) -> object:
    """Load one entry of an .npz file: an array, or an object stored by `np.savez(path, key=some_dict)`."""
    with open_arrays(path) as arrays:
        if key not in arrays:
            raise PoseError(f"{path}: contains no array {key!r}; found {format_names(arrays)}")
        with arrays.stream(key) as member:
            if not read_header(member, f"{path}: array {key!r}")[2].hasobject:
                return arrays[key]
            array = _load(member, path)
    return array.item() if isinstance(array, np.ndarray) and array.shape == () else array


def _load(file: IO[bytes], path: Path) -> object:
    """Load a pickle from an open file; `path` is its name in error messages."""
    try:
        return _ArrayUnpickler(file, encoding="latin1").load()
    except _ForeignObjectError as error:
        raise PoseError(
            f"{path}: refused because it refers to {error}; only NumPy arrays and plain containers are allowed"
        ) from error
    except Exception as error:  # a damaged pickle can raise almost any exception, because its bytes are a program
        raise PoseError(f"{path}: not a readable pickle ({error or type(error).__name__})") from error


class _ForeignObjectError(Exception):
    """Exception for a pickle that refers to an object that is not allowed."""


def _new_array(_kind: object, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """Return the empty array with which NumPy's pickles of arrays start; the values follow."""
    # Other shapes are rejected, so that a pickle without values cannot allocate memory.
    if shape not in ((0,), ()):
        raise _ForeignObjectError(f"an array of shape {shape} without values")
    return np.ndarray(shape, dtype)


def _bytearray(content: bytes | str = b"", encoding: str = "latin1") -> bytearray:
    """Return a bytearray with a content; a length, which could allocate memory, is rejected."""
    return bytearray(_encode(content, encoding) if isinstance(content, str) else bytes(memoryview(content)))


def _array_from_buffer(
    buffer: bytes | bytearray, dtype: np.dtype[np.generic], shape: tuple[int, ...], order: str
) -> Array:
    return np.frombuffer(buffer, dtype).reshape(shape, order="F" if order == "F" else "C")


def _scalar(dtype: np.dtype[np.generic], value: object = b"") -> object:
    return np.frombuffer(value, dtype)[0] if isinstance(value, bytes) else dtype.type(value)


def _encode(text: str, encoding: str) -> bytes:
    """Encode text as Latin-1. Pickles of protocol 2 and below store bytes as text with this codec."""
    if encoding != "latin1":
        raise _ForeignObjectError(f"the codec {encoding}")
    return text.encode("latin1")


# Replacements of the names in NumPy's pickles, so that none of its private functions is called.
_KNOWN: dict[tuple[str, str], object] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _encode,
    ("collections", "OrderedDict"): dict,
    ("builtins", "set"): set,
    ("builtins", "bytearray"): _bytearray,
}
for _core in ("numpy.core", "numpy._core"):
    _KNOWN[f"{_core}.multiarray", "_reconstruct"] = _new_array
    _KNOWN[f"{_core}.multiarray", "scalar"] = _scalar
    _KNOWN[f"{_core}.numeric", "_frombuffer"] = _array_from_buffer


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        module = {"__builtin__": "builtins"}.get(module, module)
        if (module, name) not in _KNOWN:
            raise _ForeignObjectError(f"{module}.{name}")
        return _KNOWN[module, name]
