"""Read pickled data without running pickled code.

Public pose data comes as pickles, and a pickle can name any function for Python to call. This reader knows NumPy
arrays, their scalars and types, and plain containers; anything else in a file is refused by name.
"""

import pickle
import zipfile
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError


def load_pickle(path: Path) -> Any:
    """The contents of a pickle file of arrays and plain containers. Raises PoseError for anything else."""
    with path.open("rb") as file:
        return _load(file, path)


def load_npz_object(path: Path, key: str) -> Any:
    """The one object stored under `key` in an .npz file (`np.savez(path, key=some_dict)`), or the array there.

    Raises PoseError when the file is no .npz, has no such key, or holds more than arrays and plain containers.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if f"{key}.npy" not in archive.namelist():
                known = ", ".join(name.removesuffix(".npy") for name in archive.namelist())
                raise PoseError(f"{path}: no array {key!r} in it; it holds {known or 'nothing'}")
            with archive.open(f"{key}.npy") as member:
                return _load_member(member, path)
    except zipfile.BadZipFile as error:
        raise PoseError(f"{path}: not a readable .npz file ({error})") from error


def _load_member(member: IO[bytes], path: Path) -> Any:
    try:
        version = np.lib.format.read_magic(member)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read_header(member)
    except ValueError as error:
        raise PoseError(f"{path}: not a NumPy array in it ({error})") from error
    if not dtype.hasobject:
        values = np.frombuffer(member.read(), dtype)
        return values.reshape(shape, order="F" if fortran else "C")
    array = _load(member, path)
    return array.item() if isinstance(array, np.ndarray) and array.shape == () else array


def _load(file: IO[bytes], path: Path) -> Any:
    try:
        return _ArrayUnpickler(file, encoding="latin1").load()
    except _ForeignObjectError as error:
        raise PoseError(
            f"{path}: refused, it names {error}; only NumPy arrays and plain containers are read from pickles"
        ) from error
    # A damaged pickle can raise nearly anything: its bytes are a program.
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, IndexError, KeyError) as error:
        raise PoseError(f"{path}: not a readable pickle ({error or type(error).__name__})") from error


class _ForeignObjectError(Exception):
    """The pickle names something that is no array."""


def _new_array(_kind: object, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    return np.ndarray(shape, dtype)


def _array_from_buffer(buffer: Any, dtype: Any, shape: tuple[int, ...], order: str) -> NDArray[Any]:
    return np.frombuffer(buffer, dtype).reshape(shape, order=cast(Any, order))


def _scalar(dtype: Any, value: Any = b"") -> Any:
    return np.frombuffer(value, dtype)[0] if isinstance(value, bytes) else dtype.type(value)


def _encode(text: str, encoding: str) -> bytes:
    """How protocol 2 spells bytes."""
    if encoding != "latin1":
        raise _ForeignObjectError(f"the codec {encoding}")
    return text.encode("latin1")


# Our own equals of the names that NumPy puts into pickles, so that none of its private functions is called.
_KNOWN: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _encode,
    ("collections", "OrderedDict"): dict,
    ("builtins", "set"): set,
    ("builtins", "bytearray"): bytearray,
}
for _core in ("numpy.core", "numpy._core"):
    _KNOWN[f"{_core}.multiarray", "_reconstruct"] = _new_array
    _KNOWN[f"{_core}.multiarray", "scalar"] = _scalar
    _KNOWN[f"{_core}.numeric", "_frombuffer"] = _array_from_buffer


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        module = {"__builtin__": "builtins"}.get(module, module)
        if (module, name) not in _KNOWN:
            raise _ForeignObjectError(f"{module}.{name}")
        return _KNOWN[module, name]
