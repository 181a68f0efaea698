"""Writer of ONNX files, in the wire format of Protocol Buffers. It replaces the package `onnx`, which is large.

A message is a list of byte strings, which are joined only once. Source: the field numbers of `onnx.proto3`.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from pose.structures.types import Array

FLOAT, INT64, BOOL = 1, 7, 9  # TensorProto.DataType
Attribute = int | str | Sequence[int]
Message = list[bytes | memoryview]
_INT, _STRING, _INTS = 2, 3, 7  # AttributeProto.AttributeType


def node(kind: str, inputs: Iterable[str], outputs: Iterable[str], attributes: dict[str, Attribute]) -> Message:
    """Return a NodeProto."""
    names = [_text(1, name) for name in inputs] + [_text(2, name) for name in outputs] + [_text(4, kind)]
    return _joined(*names, *(_message(5, _attribute(name, value)) for name, value in attributes.items()))


def tensor(name: str, values: Array) -> Message:
    """Return a TensorProto with values of float32, int64 or bool."""
    kind = {"f": FLOAT, "i": INT64, "b": BOOL}[values.dtype.kind]
    little_endian = values.astype(values.dtype.newbyteorder("<"), order="C", copy=False)
    content = little_endian.reshape(-1).view(np.uint8).data
    dims = [_number(1, side) for side in values.shape]
    return _joined(*dims, _number(2, kind), _text(8, name), _message(9, [content] if len(content) else []))


def model(
    nodes: Iterable[Message], tensors: Iterable[Message], source: tuple[str, int, Sequence[int | None]],
    result: tuple[str, int], *, opset: int, ir_version: int,
) -> bytes:  # fmt: skip
    """Return a ModelProto of one graph, from NodeProtos in the order of computation and TensorProtos of constants.

    The input has a name, data type and shape, with None for an axis of any length; the output a name and data type.
    """
    name, kind, shape = source
    dims = _joined(*(_message(1, [] if side is None else _number(1, side)) for side in shape))
    seen = _message(2, _message(1, _joined(_number(1, kind), _message(2, dims))))
    given = _message(2, _message(1, _number(1, result[1])))
    graph = _joined(
        *(_message(1, each) for each in nodes), _text(2, "network"), *(_message(5, each) for each in tensors),
        _message(11, _joined(_text(1, name), seen)), _message(12, _joined(_text(1, result[0]), given)),
    )  # fmt: skip
    operators = _message(8, _joined(_text(1, ""), _number(2, opset)))
    return b"".join(_joined(_number(1, ir_version), _message(7, graph), operators))


def _attribute(name: str, value: Attribute) -> Message:
    if isinstance(value, str):
        return _joined(_text(1, name), _text(4, value), _number(20, _STRING))
    if isinstance(value, int):
        return _joined(_text(1, name), _number(3, value), _number(20, _INT))
    return _joined(_text(1, name), *(_number(8, each) for each in value), _number(20, _INTS))


def _number(field: int, value: int) -> Message:
    return [_varint(field << 3) + _varint(value % 2**64)]  # negative numbers take ten bytes


def _text(field: int, value: str) -> Message:
    return _message(field, [value.encode()])


def _message(field: int, content: Message) -> Message:
    return [_varint(field << 3 | 2) + _varint(sum(map(len, content))), *content]


def _joined(*parts: Message) -> Message:
    return list(chain.from_iterable(parts))


def _varint(value: int) -> bytes:
    groups = []
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    return bytes([*groups, value])
