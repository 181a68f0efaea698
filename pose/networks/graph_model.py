"""Conversion of networks in TensorFlow.js' graph-model format to ONNX.

The operators of MoveNet (MultiPose and Thunder) are supported. Convolutions are transposed to ONNX' channel order; ONNX
Runtime removes the transpositions between them. Source: the operator definitions of TensorFlow and ONNX.
"""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pose.errors import PoseError
from pose.networks import onnx_file
from pose.structures.types import Array

OPSET = 18
IR_VERSION = 9  # version of the file format of ONNX 1.14, which ONNX Runtime 1.29 reads
_DTYPES: dict[str, type[np.generic]] = {"float32": np.float32, "float16": np.float16, "int32": np.int32}
# Integers become 64-bit, the type of shapes and indices in ONNX.
_TYPES = {"DT_FLOAT": onnx_file.FLOAT, "DT_INT32": onnx_file.INT64, "DT_BOOL": onnx_file.BOOL}
_SAME_NAME = ["Abs", "Equal", "Exp", "Greater", "Identity", "Less", "Mul", "Range", "Reciprocal", "Reshape", "Shape"]
_SAME_NAME += ["Sigmoid", "Size", "Sqrt", "Sub", "Tile"]
_OPERATORS = {
    **{name: name for name in _SAME_NAME},
    "AddV2": "Add",
    "AddN": "Sum",
    "Maximum": "Max",
    "Minimum": "Min",
    "RealDiv": "Div",
    "FloorDiv": "Div",  # equal for positive integers
    "GreaterEqual": "GreaterOrEqual",
    "LogicalAnd": "And",
    "Select": "Where",
    "GatherNd": "GatherND",
}
_REDUCTIONS = {"Sum": "ReduceSum", "Max": "ReduceMax"}
_TO_CHANNELS_FIRST, _TO_CHANNELS_LAST = [0, 3, 1, 2], [0, 2, 3, 1]

Node = dict[str, Any]


def convert(graph: Path, weights: Path) -> bytes:
    """Return the network of a JSON file, and of a file with its weights in that order, as an ONNX file.

    A file that is not readable, or has unsupported operators, is a PoseError.
    """
    try:
        content = json.loads(graph.read_bytes())
        constants = _constants(content["weightsManifest"], weights.read_bytes())
        nodes = {node["name"]: node for node in content["modelTopology"]["node"]}
        return _Conversion(nodes, constants).run()
    except OSError as error:
        raise PoseError(f"{error.filename}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise PoseError(f"{graph}: not a readable graph model ({type(error).__name__}: {error})") from error


def _constants(manifest: Sequence[Node], values: bytes) -> dict[str, Array]:
    """Return the weights by name. Weights that are stored in half precision become float32."""
    constants: dict[str, Array] = {}
    start = 0
    for entry in (entry for group in manifest for entry in group["weights"]):
        dtype = np.dtype(_DTYPES[entry.get("quantization", entry)["dtype"]]).newbyteorder("<")
        count = int(np.prod(entry["shape"], dtype=np.int64))
        array = np.frombuffer(values, dtype, count, start).reshape(entry["shape"])
        start += count * dtype.itemsize
        constants[entry["name"]] = array.astype(np.float32 if entry["dtype"] == "float32" else np.int64)
    if start != len(values):
        raise ValueError(f"{len(values)} bytes of weights instead of {start}")
    return constants


class _Conversion:
    """Conversion of one graph, node by node in the order of computation."""

    def __init__(self, nodes: dict[str, Node], constants: dict[str, Array]) -> None:
        self._nodes = nodes
        self._constants = constants
        self._converted: list[onnx_file.Message] = []
        self._used: set[str] = set()  # names of inputs
        self._tensors: dict[str, Array] = {}
        self._converters: dict[str, Callable[[Node], None]] = {
            "_FusedConv2D": self._convolution,
            "FusedDepthwiseConv2dNative": self._convolution,
            "DepthwiseConv2dNative": self._convolution,
            "ResizeBilinear": self._resize,
            "MaxPool": self._max_pool,
            "Cast": self._cast,
            "SquaredDifference": self._squared_difference,
            "Pack": self._pack,
            "Unpack": self._unpack,
            "Split": self._split,
            "ConcatV2": self._concatenate,
            "Squeeze": self._squeeze,
            "ExpandDims": self._expand,
            "Fill": self._fill,
            "TopKV2": self._top_k,
            "ArgMax": self._arg_max,
            "StridedSlice": self._slice,
            **dict.fromkeys(_REDUCTIONS, self._reduce),
        }

    def run(self) -> bytes:
        (source,) = [node for node in self._nodes.values() if node["op"] == "Placeholder"]
        (result,) = [name for name, node in self._nodes.items() if node["op"] == "Identity"]
        for node in self._ordered(result):
            self._convert(node)
        # Kernels are used as transposed copies, so the original ones are omitted.
        tensors = [onnx_file.tensor(name, values) for name, values in self._tensors.items() if name in self._used]
        return onnx_file.model(
            self._converted, tensors, (source["name"], onnx_file.INT64, _shape(source)), (result, onnx_file.FLOAT),
            opset=OPSET, ir_version=IR_VERSION,
        )  # fmt: skip

    def _ordered(self, result: str) -> Iterator[Node]:
        """Yield the nodes that `result` needs, each after its inputs."""
        done: set[str] = set()
        stack = [result]
        while stack:
            node = self._nodes[stack[-1]]
            sources = [name.partition(":")[0] for name in _inputs(node)]
            missing = [name for name in sources if name not in done]
            if len(stack) > len(self._nodes):
                raise ValueError("the nodes form a cycle")
            if missing:
                stack.append(missing[0])
                continue
            stack.pop()
            if node["name"] not in done:
                done.add(node["name"])
                yield node

    def _convert(self, node: Node) -> None:
        kind = node["op"]
        if kind == "Const":
            self._constant(self._constants[node["name"]], node["name"])
        elif kind in self._converters:
            self._converters[kind](node)
        elif kind in _OPERATORS:
            self._add(_OPERATORS[kind], _inputs(node), node["name"])
        elif kind != "Placeholder":
            raise ValueError(f"the operator {kind} is not supported")

    def _add(self, kind: str, inputs: Sequence[str], output: str | list[str], **attributes: Any) -> str:
        """Add an ONNX node; return its first output."""
        outputs = [output] if isinstance(output, str) else output
        names = [name.removesuffix(":0") for name in inputs]
        self._used.update(names)
        self._converted.append(onnx_file.node(kind, names, outputs, attributes))
        return outputs[0]

    def _constant(self, value: Array | Sequence[int], name: str) -> str:
        self._tensors[name] = np.array(value, None if isinstance(value, np.ndarray) else np.int64, order="C")
        return name

    def _value(self, name: str) -> list[int]:
        """Return the integers of a constant input."""
        return [int(value) for value in self._constants[name].reshape(-1)]

    def _convolution(self, node: Node) -> None:
        source, kernel, *bias = _inputs(node)
        name, weights = node["name"], self._constants[kernel]
        if "Depthwise" in node["op"]:  # (H, W, C, M) -> (C * M, 1, H, W)
            groups = weights.shape[2]
            weights = weights.transpose(2, 3, 0, 1).reshape(-1, 1, *weights.shape[:2])
        else:  # (H, W, C, D) -> (D, C, H, W)
            groups, weights = 1, weights.transpose(3, 2, 0, 1)
        fused = [_text(part) for part in node["attr"].get("fused_ops", {}).get("list", {}).get("s", [])]
        if fused not in ([], ["BiasAdd"], ["BiasAdd", "Relu"], ["BiasAdd", "Relu6"]):
            raise ValueError(f"a convolution with {fused} is not supported")
        channels = self._add("Transpose", [source], name + "#in", perm=_TO_CHANNELS_FIRST)
        inputs = [channels, self._constant(weights, name + "#kernel"), *bias]
        layer = self._add("Conv", inputs, name + "#conv", group=groups, **_window(node, weights.shape[2:]))
        if fused[1:] == ["Relu"]:
            layer = self._add("Relu", [layer], name + "#relu")
        elif fused[1:] == ["Relu6"]:
            bounds = [self._constant(np.array(bound, np.float32), f"{name}#{bound}") for bound in (0, 6)]
            layer = self._add("Clip", [layer, *bounds], name + "#relu6")
        self._add("Transpose", [layer], name, perm=_TO_CHANNELS_LAST)

    def _max_pool(self, node: Node) -> None:
        name, (source,) = node["name"], _inputs(node)
        channels = self._add("Transpose", [source], name + "#in", perm=_TO_CHANNELS_FIRST)
        window = _window(node, _numbers(node, "ksize")[1:3])
        self._add(
            "Transpose", [self._add("MaxPool", [channels], name + "#pool", **window)], name, perm=_TO_CHANNELS_LAST
        )

    def _resize(self, node: Node) -> None:
        name, (source, size) = node["name"], _inputs(node)
        if not node["attr"]["half_pixel_centers"]["b"] or node["attr"]["align_corners"]["b"]:
            raise ValueError("only bilinear interpolation with half-pixel centres is supported")
        channels = self._add("Transpose", [source], name + "#in", perm=_TO_CHANNELS_FIRST)
        before = self._add("Shape", [channels], name + "#shape", end=2)
        sizes = self._add("Concat", [before, size], name + "#sizes", axis=0)
        resized = self._add("Resize", [channels, "", "", sizes], name + "#resized", mode="linear")
        self._add("Transpose", [resized], name, perm=_TO_CHANNELS_LAST)

    def _cast(self, node: Node) -> None:
        self._add("Cast", _inputs(node), node["name"], to=_TYPES[node["attr"]["DstT"]["type"]])

    def _squared_difference(self, node: Node) -> None:
        difference = self._add("Sub", _inputs(node), node["name"] + "#difference")
        self._add("Mul", [difference, difference], node["name"])

    def _pack(self, node: Node) -> None:
        axis, name = _number(node, "axis"), node["name"]
        where = self._constant([axis], name + "#axis")
        parts = [
            self._add("Unsqueeze", [source, where], f"{name}#{place}") for place, source in enumerate(_inputs(node))
        ]
        self._add("Concat", parts, name, axis=axis)

    def _unpack(self, node: Node) -> None:
        axis, name, count = _number(node, "axis"), node["name"], _number(node, "num")
        parts = [f"{name}#{place}" for place in range(count)]
        self._add("Split", _inputs(node), parts, axis=axis, num_outputs=count)
        where = self._constant([axis], name + "#axis")
        for part, output in zip(parts, _outputs(name, count), strict=True):
            self._add("Squeeze", [part, where], output)

    def _split(self, node: Node) -> None:
        axis, source = _inputs(node)
        count = _number(node, "num_split")
        (place,) = self._value(axis)
        self._add("Split", [source], _outputs(node["name"], count), axis=place, num_outputs=count)

    def _concatenate(self, node: Node) -> None:
        *sources, axis = _inputs(node)
        (place,) = self._value(axis)
        self._add("Concat", sources, node["name"], axis=place)

    def _squeeze(self, node: Node) -> None:
        axes = self._constant(_numbers(node, "squeeze_dims"), node["name"] + "#axes")
        self._add("Squeeze", [*_inputs(node), axes], node["name"])

    def _expand(self, node: Node) -> None:
        source, axis = _inputs(node)
        axes = self._constant(self._value(axis), node["name"] + "#axes")
        self._add("Unsqueeze", [source, axes], node["name"])

    def _fill(self, node: Node) -> None:
        shape, value = _inputs(node)
        self._add("Expand", [value, shape], node["name"])

    def _top_k(self, node: Node) -> None:
        source, count = _inputs(node)
        counts = self._constant(self._value(count), node["name"] + "#count")
        self._add("TopK", [source, counts], _outputs(node["name"], 2))

    def _arg_max(self, node: Node) -> None:
        source, axis = _inputs(node)
        (place,) = self._value(axis)
        self._add("ArgMax", [source], node["name"], axis=place, keepdims=0)

    def _reduce(self, node: Node) -> None:
        source, axes = _inputs(node)
        kept = int(node["attr"]["keep_dims"]["b"])
        positions = self._constant(self._value(axes), node["name"] + "#axes")
        self._add(_REDUCTIONS[node["op"]], [source, positions], node["name"], keepdims=kept)

    def _slice(self, node: Node) -> None:
        source, *bounds = _inputs(node)
        begins, ends, steps = (self._value(bound) for bound in bounds)
        masks = {
            kind: _number(node, f"{kind}_mask") for kind in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
        }
        if masks["ellipsis"] or any(step != 1 for step in steps):
            raise ValueError("only slices with step 1 and without ellipsis are supported")
        cut: list[tuple[int, int, int]] = []
        removed: list[int] = []
        added: list[int] = []
        axis = 0
        for place, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            if masks["new_axis"] >> place & 1:
                added.append(place - len(removed))
                continue
            if masks["shrink_axis"] >> place & 1:
                removed.append(axis)
                cut.append((axis, begin, begin + 1 if begin != -1 else _END))
            else:
                first = 0 if masks["begin"] >> place & 1 else begin
                cut.append((axis, first, _END if masks["end"] >> place & 1 else end))
            axis += 1
        self._sliced(node["name"], source, cut, removed, added)

    def _sliced(
        self, name: str, source: str, cut: list[tuple[int, int, int]], removed: list[int], added: list[int]
    ) -> None:
        axes, begins, ends = zip(*cut, strict=True)
        inputs = [
            self._constant(values, f"{name}#{kind}")
            for kind, values in (("begins", begins), ("ends", ends), ("axes", axes))
        ]
        last = self._add("Slice", [source, *inputs], name + "#cut")
        for kind, positions in (("Squeeze", removed), ("Unsqueeze", added)):
            if positions:
                last = self._add(kind, [last, self._constant(positions, f"{name}#{kind}")], f"{name}#{kind}d")
        self._add("Identity", [last], name)


_END = 2**31 - 1  # end of a slice up to the end of its axis, in ONNX


def _window(node: Node, kernel: Sequence[int]) -> dict[str, object]:
    """Return the ONNX attributes of a sliding window, for a convolution or pooling."""
    # TensorFlow pads the odd pixel at the end, as SAME_UPPER in ONNX.
    padding = {"SAME": "SAME_UPPER", "VALID": "VALID"}[_text(node["attr"]["padding"]["s"])]
    return {"kernel_shape": list(kernel), "strides": _numbers(node, "strides")[1:3], "auto_pad": padding}


def _shape(source: Node) -> list[int | None]:
    """Return the shape (1, H, W, 3) of the input; None for a side that may vary."""
    dims = source.get("attr", {}).get("shape", {}).get("shape", {}).get("dim", [])
    sides = [int(dim["size"]) for dim in dims] or [1, -1, -1, 3]
    return [None if side < 0 else side for side in sides]


def _inputs(node: Node) -> list[str]:
    return [name for name in node.get("input", []) if not name.startswith("^")]


def _outputs(name: str, count: int) -> list[str]:
    """Return TensorFlow's names of the outputs of a node."""
    return [name, *(f"{name}:{place}" for place in range(1, count))]


def _number(node: Node, attribute: str) -> int:
    return int(node["attr"].get(attribute, {}).get("i", 0))


def _numbers(node: Node, attribute: str) -> list[int]:
    return [int(value) for value in node["attr"][attribute]["list"]["i"]]


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode()
