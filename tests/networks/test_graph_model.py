"""TensorFlow.js' graph models: converted networks compute what their operators define."""

import base64
import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from pose.errors import PoseError
from pose.networks.graph_model import convert


class Builder:
    """A graph model, written to two files."""

    def __init__(self):
        self.nodes = [{"name": "input", "op": "Placeholder"}]
        self.manifest, self.values = [], b""

    def constant(self, name, value, stored=None):
        array = np.asarray(value)
        array = array.astype(np.int32 if array.dtype.kind == "i" else np.float32)
        entry = {"name": name, "shape": list(array.shape), "dtype": str(array.dtype)}
        if stored:
            entry["quantization"] = {"dtype": stored, "original_dtype": "float32"}
        self.manifest.append(entry)
        self.values += array.astype(stored or array.dtype).tobytes()
        self.nodes.append({"name": name, "op": "Const"})
        return name

    def add(self, op, *inputs, name=None, **attributes):
        name = name or f"{op}_{len(self.nodes)}"
        self.nodes.insert(0, {"name": name, "op": op, "input": list(inputs), "attr": attributes})  # any order is valid
        return name

    def picture(self):
        return self.add("Cast", "input", DstT={"type": "DT_FLOAT"})

    def write(self, folder, result):
        self.add("Identity", result, name="result")
        graph, weights = folder / "graph.json", folder / "weights.bin"
        content = {"modelTopology": {"node": self.nodes}, "weightsManifest": [{"weights": self.manifest}]}
        graph.write_text(json.dumps(content))
        weights.write_bytes(self.values)
        return graph, weights

    def run(self, folder, result, image):
        session = onnxruntime.InferenceSession(convert(*self.write(folder, result)))
        return session.run(None, {"input": image[None].astype(np.int64)})[0]


def text(value):
    return {"s": base64.b64encode(value.encode()).decode()}


def texts(*values):
    return {"list": {"s": [text(value)["s"] for value in values]}}


def integers(*values):
    return {"list": {"i": [str(value) for value in values]}}


def masks(**given):
    return {f"{k}_mask": {"i": str(given.get(k, 0))} for k in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}


def same_padding(image, kernel, stride):
    """TensorFlow's definition: the output has ceil(n / stride) pixels; an odd pixel of padding goes to the end."""
    sides = []
    for length in reversed(image.shape[2:]):
        missing = max((-(-length // stride) - 1) * stride + kernel - length, 0)
        sides += [missing // 2, missing - missing // 2]
    return torch.nn.functional.pad(image, sides)


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(6, 8), (7, 5)])
def test_convolution_padding_equals_tensorflow(size, stride, depthwise, rng, tmp_path):
    kernel = rng.normal(size=(3, 3, 3, 2)).astype(np.float16)
    bias = rng.normal(size=6 if depthwise else 2)
    image = rng.integers(0, 9, size=(*size, 3))
    graph = Builder()
    names = graph.constant("kernel", kernel, "float16"), graph.constant("bias", bias)
    options = {"strides": integers(1, stride, stride, 1), "padding": text("SAME")}
    kind = "FusedDepthwiseConv2dNative" if depthwise else "_FusedConv2D"
    layer = graph.add(kind, graph.picture(), *names, fused_ops=texts("BiasAdd", "Relu6"), **options)
    found = graph.run(tmp_path, layer, image)
    weights = torch.from_numpy(kernel.astype(np.float32))
    weights = weights.permute(2, 3, 0, 1).reshape(6, 1, 3, 3) if depthwise else weights.permute(3, 2, 0, 1)
    padded = same_padding(torch.from_numpy(image).float().permute(2, 0, 1)[None], 3, stride)
    expected = torch.nn.functional.conv2d(padded, weights, torch.from_numpy(bias).float(), stride, 0, 1, 3**depthwise)
    np.testing.assert_allclose(found, expected.clamp(0, 6).permute(0, 2, 3, 1).numpy(), atol=1e-4)


def test_resize_and_pooling_equal_references(rng, tmp_path):
    image = rng.integers(0, 255, size=(4, 3, 3))
    graph = Builder()
    options = {"half_pixel_centers": {"b": True}, "align_corners": {"b": False}}
    large = graph.add("ResizeBilinear", graph.picture(), graph.constant("size", [8, 6]), **options)
    pooled = {"ksize": integers(1, 5, 5, 1), "strides": integers(1, 1, 1, 1), "padding": text("SAME")}
    found = graph.run(tmp_path, graph.add("MaxPool", large, **pooled), image)
    channels = torch.from_numpy(image).float().permute(2, 0, 1)[None]
    channels = torch.nn.functional.interpolate(channels, (8, 6), mode="bilinear", align_corners=False)
    expected = torch.nn.functional.max_pool2d(channels, 5, 1, 2)
    np.testing.assert_allclose(found, expected.permute(0, 2, 3, 1).numpy(), atol=1e-3)


def test_top_k_and_gather_equal_references(rng, tmp_path):
    image = rng.permutation(60).reshape(5, 4, 3)
    graph = Builder()
    picture = graph.picture()
    bounds = [graph.constant(name, value) for name, value in (("b", [0] * 4), ("e", [1, 0, 0, 1]), ("s", [1] * 4))]
    red = graph.add("StridedSlice", picture, *bounds, **masks(shrink_axis=9, begin=6, end=6))
    flat = graph.add("Reshape", red, graph.constant("flat", [-1]))
    graph.add("TopKV2", flat, graph.constant("count", 3), name="best")
    width = graph.constant("width", 4)
    row = graph.add("FloorDiv", "best:1", width)
    column = graph.add("Sub", "best:1", graph.add("Mul", row, width))
    pixels = graph.add("Squeeze", picture, squeeze_dims=integers(0))
    places = graph.add("Pack", row, column, axis={"i": "1"})
    gathered = graph.add("GatherNd", pixels, places)
    parts = graph.add("Unpack", gathered, num={"i": "3"}, axis={"i": "1"}, name="parts")
    last = graph.add("ExpandDims", f"{parts}:2", graph.constant("axis", 1))
    scores = graph.add("ExpandDims", "best", graph.constant("axis1", 1))
    found = graph.run(tmp_path, graph.add("ConcatV2", scores, last, graph.constant("axis2", 1)), image)
    order = np.argsort(-image[:, :, 0].ravel())[:3]
    expected = np.stack([image[:, :, 0].ravel()[order], image[:, :, 2].ravel()[order]], axis=1)
    np.testing.assert_array_equal(found, expected)


def test_reductions_and_comparisons_equal_references(rng, tmp_path):
    image = rng.integers(-9, 9, size=(3, 4, 3))
    graph = Builder()
    picture = graph.picture()
    squares = graph.add("SquaredDifference", picture, graph.constant("three", 3.0))
    total = graph.add("Sum", squares, graph.constant("axes", [1, 2]), keep_dims={"b": True})
    highest = graph.add("Max", picture, graph.constant("axes2", [1, 2]), keep_dims={"b": True})
    chosen = graph.add("Select", graph.add("Less", total, highest), total, highest)
    larger = graph.add("Maximum", chosen, graph.constant("five", 5.0))
    found = graph.run(tmp_path, graph.add("Sqrt", larger), image) ** 2
    total, highest = ((image - 3) ** 2).sum((0, 1)), image.max((0, 1))
    expected = np.maximum(np.where(total < highest, total, highest), 5)
    np.testing.assert_allclose(found[0, 0, 0], expected, rtol=1e-6)


def test_the_package_onnx_reads_what_is_written(tmp_path):
    graph = Builder()
    whole = graph.add("Squeeze", graph.picture(), squeeze_dims=integers(0))
    network = onnx.load_from_string(
        convert(*graph.write(tmp_path, graph.add("ArgMax", whole, graph.constant("a", -1))))
    )
    assert [node.op_type for node in network.graph.node] == ["Cast", "Squeeze", "ArgMax", "Identity"]
    axis = next(attribute for attribute in network.graph.node[2].attribute if attribute.name == "axis")
    assert (axis.type, axis.i) == (onnx.AttributeProto.INT, -1)
    (shape,) = [onnx.numpy_helper.to_array(each) for each in network.graph.initializer]
    assert shape.tolist() == [0]
    assert network.opset_import[0].version == 18


def network(folder, op="Abs"):
    graph = Builder()
    return graph.write(folder, graph.add(op, graph.picture()))


def test_unreadable_files_give_a_one_line_error(tmp_path):
    graph, weights = network(tmp_path)
    assert convert(graph, weights)
    weights.write_bytes(b"more")
    with pytest.raises(PoseError, match="4 bytes of weights instead of 0"):
        convert(graph, weights)
    with pytest.raises(PoseError, match=r"missing\.json: No such file"):
        convert(tmp_path / "missing.json", weights)
    for content in ("{", "[]", '{"weightsManifest": []}', '{"weightsManifest": [], "modelTopology": {"node": [{}]}}'):
        graph.write_text(content)
        weights.write_bytes(b"")
        with pytest.raises(PoseError, match=r"graph\.json: not a readable graph model") as error:
            convert(graph, weights)
        assert "\n" not in str(error.value)
    with pytest.raises(PoseError, match="the operator Betainc is not supported"):
        convert(*network(tmp_path, "Betainc"))
    cycle = Builder()
    cycle.add("Abs", "b", name="a")
    cycle.add("Abs", "a", name="b")
    with pytest.raises(PoseError, match="the nodes form a cycle"):
        convert(*cycle.write(tmp_path, "b"))
