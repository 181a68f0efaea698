"""Columns of a result: arrays with one row per person and frame.

A data class declares each of its columns once, as a field with the value of `column`. The checks and operations of the
data class, temporary files and cache entries, the arrays of `poses.npz` with their checks, and the members of
`poses.json` follow from this declaration (`pose.results.schema`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]  # of any dtype
Rows = slice | list[int] | NDArray[np.generic]
KEYPOINTS = -1  # stands in a shape for the number of 2D keypoints, which depends on the skeleton


@dataclass(frozen=True, slots=True)
class Column:
    """Declaration of an array with one row per person and frame."""

    name: str  # name of the array in `poses.npz`; empty if it is not stored there
    shape: tuple[int, ...] = ()  # shape of one row; `KEYPOINTS` stands for the number of 2D keypoints
    dtype: str = "<f4"  # data type of the array
    unit: str = ""  # unit of the values; empty for counts, flags and probabilities
    space: str = ""  # 'image', 'camera' or 'world' for positions; otherwise empty
    limits: tuple[float, float] | None = None  # smallest and largest valid value; None if every value is valid
    # Part of a result to which the column belongs; see `pose.results.schema.parts_of`. Empty: every result.
    part: str = ""
    fill: float = 0.0  # value of a row without a measurement, and of all rows in files without the array
    required: bool = True  # whether a file with this part must contain the array
    member: str = ""  # name of the member in `poses.json`; empty if it is not written
    decimals: int | None = None  # number of decimals there; None for integers and flags
    # names of the entries of a row of flags, of which `poses.json` lists those that are set
    labels: tuple[str, ...] = ()
    sparse: bool = False  # whether `poses.json` omits values that are 0
    nullable: bool = False  # whether the array may be None in the data class; temporary files do not store it
    attribute: str = ""  # name of the field of the data class

    def row_shape(self, keypoints: int) -> tuple[int, ...]:
        """Return the shape of one row, for a number of 2D keypoints."""
        if self.shape[:1] != (KEYPOINTS,):  # no other axis counts keypoints
            return self.shape
        return keypoints, *self.shape[1:]

    def filled(self, count: int, keypoints: int = 0) -> Array:
        """Return `count` rows without a measurement."""
        shape = count, *self.row_shape(keypoints)
        if self.fill == 0:
            return np.zeros(shape, self.dtype)  # takes no memory until it is changed
        return np.full(shape, self.fill, self.dtype)


def column(
    name: str, shape: tuple[int, ...] = (), dtype: str = "<f4", *, optional: bool = False, **properties: Any
) -> Any:
    """Return the value of a data class field that declares a column.

    Args:
        name: Name in `poses.npz`.
        shape: Shape of one row.
        dtype: Data type.
        optional: Whether the field may be left out; its rows are then filled with the value of rows without a
            measurement.
        **properties: Other attributes of `Column`.
    """
    metadata = {"column": Column(name, shape, dtype, **properties)}
    return field(default=None, metadata=metadata) if optional else field(metadata=metadata)


_declared: dict[type, tuple[Column, ...]] = {}


def columns_of(kind: type) -> tuple[Column, ...]:
    """Return the columns that a data class declares, in their order."""
    if kind not in _declared:
        columns = ((entry.name, entry.metadata.get("column")) for entry in fields(kind))
        _declared[kind] = tuple(replace(one, attribute=name) for name, one in columns if one is not None)
    return _declared[kind]


_row_types: "dict[tuple[type, int], np.dtype[np.void]]" = {}
_row_shapes: dict[tuple[type, int], list[tuple[Column, tuple[int, ...]]]] = {}


def row_type(kind: type, keypoints: int = 0) -> "np.dtype[np.void]":
    """Return the structured type of a row of a data class; its fields are named as those of the data class."""
    if (kind, keypoints) not in _row_types:
        stored = (one for one in columns_of(kind) if not one.nullable)
        _row_types[kind, keypoints] = np.dtype([(one.attribute, one.dtype, one.row_shape(keypoints)) for one in stored])
    return _row_types[kind, keypoints]


def rows_of(values: "ColumnSet", keypoints: int = 0) -> NDArray[np.void]:
    """Return the columns of a data class as one structured array of the type `row_type`."""
    rows = np.empty(len(values), row_type(type(values), keypoints))
    for name in rows.dtype.names or ():
        rows[name] = getattr(values, name)
    return rows


def arrays_of(kind: type, rows: NDArray[np.void]) -> dict[str, Any]:
    """Return the columns in a structured array of the type `row_type`, as arguments of the data class `kind`."""
    return {name: np.array(rows[name], order="C") for name in row_type(kind, 1).names or ()}


def views_of(kind: type, rows: NDArray[np.void]) -> dict[str, Any]:
    """Return the columns in a structured array like `arrays_of`, without copying them."""
    return {name: rows[name] for name in row_type(kind, 1).names or ()}


class ColumnSet:
    """Base of data classes of columns: the same number of rows in every array."""

    __slots__ = ()

    def check_columns(self, keypoints: int = 0) -> None:
        """Fill optional columns that were left out, and check all shapes; ValueError if one differs."""
        key = type(self), keypoints
        if key not in _row_shapes:
            _row_shapes[key] = [(one, one.row_shape(keypoints)) for one in columns_of(type(self))]
        first, count = _row_shapes[key][0][0], len(self)
        for one, shape in _row_shapes[key]:
            values = getattr(self, one.attribute)
            if values is None and one.nullable:
                continue
            if values is None or (count and not len(values) and one is not first):
                object.__setattr__(self, one.attribute, one.filled(count, keypoints))
            else:
                check_shape(self, one.attribute, (count, *shape))

    def __len__(self) -> int:
        return len(getattr(self, columns_of(type(self))[0].attribute))

    def __getitem__(self, rows: Rows) -> Self:
        known = {name: values for name, values in self._values() if values is not None}
        return self._with({name: values[rows] for name, values in known.items()})

    def __add__(self, more: Self) -> Self:
        """Return these rows, followed by those of `more`."""
        joined = {}
        for one, (name, values), (_, next_values) in zip(
            columns_of(type(self)), self._values(), more._values(), strict=True
        ):
            if values is not None or next_values is not None:
                parts = ((self, values), (more, next_values))
                joined[name] = np.concatenate([one.filled(len(owner)) if v is None else v for owner, v in parts])
        return self._with(joined)

    def _values(self) -> list[tuple[str, Array | None]]:
        return [(one.attribute, getattr(self, one.attribute)) for one in columns_of(type(self))]

    def _with(self, arrays: Mapping[str, Array]) -> Self:
        return replace(self, **arrays)  # type: ignore[type-var]

    @classmethod
    def unknown(cls, count: int) -> Self:
        """Return `count` rows without a measurement."""
        return cls(**{one.attribute: None if one.nullable else one.filled(count) for one in columns_of(cls)})

    def arrays(self) -> dict[str, Array]:
        """Return the columns by their names in `poses.npz`."""
        return {one.name: getattr(self, one.attribute) for one in columns_of(type(self)) if one.name}


def check_shape(owner: object, name: str, shape: tuple[int | None, ...]) -> None:
    """Raise ValueError unless attribute `name` of `owner` has shape `shape`. None in `shape` allows any length."""
    array = getattr(owner, name)
    if array.shape == shape:
        return
    if array.ndim != len(shape) or any(
        want is not None and have != want for have, want in zip(array.shape, shape, strict=True)
    ):
        expected = "(" + ", ".join("*" if want is None else str(want) for want in shape) + ")"
        raise ValueError(f"{type(owner).__name__}.{name}: expected shape {expected}, got {array.shape}")
