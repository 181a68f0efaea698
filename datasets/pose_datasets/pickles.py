"""Read pickled data without running pickled code.

Public pose data comes as pickles, and a pickle can name any function for Python to call. This reader knows NumPy
arrays, their scalars and types, and plain containers; anything else in a file is refused by name.
"""

import pickle
from pathlib import Path
from typing import IO

import numpy as np

from pose.errors import PoseError
from pose.system.archives import open_arrays, read_header, some_names
from pose.types import Array


def load_pickle(path: Path) -> object:
    """The contents of a pickle file of arrays and plain containers. Raises PoseError for anything else."""
    with path.open("rb") as file:
        return _load(file, path)


def load_npz_object(path: Path, key: str) -> object:
    """The one object stored under `key` in an .npz file (`np.savez(path, key=some_dict)`), or the array there.

    Raises PoseError when the file is no .npz, has no such key, or holds more than arrays and plain containers.
    """
    with open_arrays(path) as arrays:
        if key not in arrays:
            raise PoseError(f"{path}: no array {key!r} in it; it holds {some_names(arrays)}")
        with arrays.stream(key) as member:
            if not read_header(member, f"{path}: array {key!r}")[2].hasobject:
                return arrays[key]
            array = _load(member, path)
    return array.item() if isinstance(array, np.ndarray) and array.shape == () else array


def _load(file: IO[bytes], path: Path) -> object:
    try:
        return _ArrayUnpickler(file, encoding="latin1").load()
    except _ForeignObjectError as error:
        raise PoseError(
            f"{path}: refused, it refers to {error}; only NumPy arrays and plain containers are allowed"
        ) from error
    except Exception as error:  # a damaged pickle can raise nearly anything: its bytes are a program
        raise PoseError(f"{path}: not a readable pickle ({error or type(error).__name__})") from error


class _ForeignObjectError(Exception):
    """The pickle names something that is no array."""


def _new_array(_kind: object, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """The empty array that NumPy's pickles begin with and fill afterwards: what they name may not take memory here."""
    if shape not in ((0,), ()):
        raise _ForeignObjectError(f"an array of the shape {shape} without values")
    return np.ndarray(shape, dtype)


def _bytearray(content: bytes | str = b"", encoding: str = "latin1") -> bytearray:
    """As pickles spell it: with its content, never with a length."""
    return bytearray(_encode(content, encoding) if isinstance(content, str) else bytes(memoryview(content)))


def _array_from_buffer(
    buffer: bytes | bytearray, dtype: np.dtype[np.generic], shape: tuple[int, ...], order: str
) -> Array:
    return np.frombuffer(buffer, dtype).reshape(shape, order="F" if order == "F" else "C")


def _scalar(dtype: np.dtype[np.generic], value: object = b"") -> object:
    return np.frombuffer(value, dtype)[0] if isinstance(value, bytes) else dtype.type(value)


def _encode(text: str, encoding: str) -> bytes:
    """How protocol 2 spells bytes."""
    if encoding != "latin1":
        raise _ForeignObjectError(f"the codec {encoding}")
    return text.encode("latin1")


# Our own equals of the names that NumPy puts into pickles, so that none of its private functions is called.
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
