"""Exported lifters compute what the network computes, at other sizes too, and step as `LifterStream` does."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sensor_motion import motion

from pose.errors import PoseError
from pose.lifting import exchange
from pose.lifting.backends import OnnxGraph
from pose.lifting.checkpoint import save_checkpoint
from pose.lifting.config import LifterConfig
from pose.lifting.exchange import TOLERANCE, export_lifter
from pose.lifting.load import load_lifter
from pose.lifting.model import LifterNetwork
from pose.lifting.onnx_lifter import OnnxLifter
from pose.lifting.predict import Lifter, split_outputs
from pose.lifting.sensor.features import describe, restore
from pose.lifting.sensor.network import SensorNetwork, export_sensor
from pose.lifting.sensor.runtime import SensorCorrector
from pose.lifting.step import RecurrentCore, StreamStep, WindowedCore
from pose.lifting.stream import LifterStream
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.camera import Camera
from pose.structures.skeletons import BLAZEPOSE33, H36M17

WINDOW = {"attention": "local", "attention_options": {"window": 6}, "streaming": True}
STREAMS = {
    "local": WINDOW,
    "dilated": {**WINDOW, "attention_options": {"window": 3, "dilation": 2, "global_tokens": 2}},
    "own": {**WINDOW, "attention_options": {"window": 3, "global_tokens": 2, "global_projections": "own"}},
    "by head": {**WINDOW, "attention_options": {"window": 3, "dilation": "1,2"}},
    "softmax": {**WINDOW, "attention": "softmax", "attention_options": {"memory": 5}},
    "post": {**WINDOW, "norm": "post"},
    "none": {**WINDOW, "norm": "none", "init": "t-fixup"},
    "performer": {"attention": "performer", "streaming": True},
    "fastformer": {"attention": "fastformer-cumulative", "streaming": True},
    "adaptive": {"attention": "adaptive-span", "attention_options": {"span": 0.8, "ramp": 0.1}, "streaming": True},
    "shared maps": {**WINDOW, "shared_maps": 2},
    "shared layers": {**WINDOW, "shared_layers": True},
    "reversible": {**WINDOW, "residual": "reversible"},
    "xl": {"attention": "transformer-xl", "attention_options": {"memory": 7}, "streaming": True},
    "blocks": {"attention": "blocks", "attention_options": {"block": 4}, "streaming": True},
    "sparse": {"attention": "sparse", "attention_options": {"stride": 4, "arrange": "layers"}, "streaming": True},
}


def network_of(**changes) -> LifterNetwork:
    torch.manual_seed(0)
    network = LifterNetwork(LifterConfig(**({"dim": 16, "depth": 2, "heads": 2} | changes))).eval()
    torch.nn.init.normal_(network.head.weight, std=0.1)
    network.calibration.copy_(torch.tensor([1.2, 0.4])[:, None])
    return network


@pytest.fixture(scope="module")
def shipped_like(tmp_path_factory):
    """A checkpoint of a stream with its ONNX step beside it."""
    folder = tmp_path_factory.mktemp("stream")
    save_checkpoint(network_of(**WINDOW, depth=1), folder / "stream.safetensors")  # exporting a layer takes seconds
    lifter = TorchLifter.load(folder / "stream.safetensors")
    difference = export_lifter(lifter.network, "onnx", folder / "stream.onnx", lifter.sha256)
    assert difference < TOLERANCE
    assert str(Path(__file__).parents[2]).encode() not in (folder / "stream.onnx").read_bytes()
    return lifter


@pytest.fixture(scope="module")
def exported(shipped_like):
    """The same by ONNX Runtime."""
    lifter = load_lifter(shipped_like.path)
    assert isinstance(lifter, OnnxLifter)
    return lifter


def answers(lifter: Lifter, sequence, people: int = 1, lookahead: int = 2, skeleton=H36M17) -> np.ndarray:
    stream = LifterStream(lifter, skeleton, Camera.of((640, 480)), lookahead=lookahead)
    states = [stream.new_person() for _ in range(people)]
    found = []
    for xy, score, time in zip(sequence.keypoints, sequence.scores, sequence.times, strict=True):
        shifted = np.stack([xy + 5 * person for person in range(people)]).astype(np.float32)
        found.append(stream.step(states, shifted, np.repeat(score[None], people, axis=0), float(time)))
    assert all(answer is None for answer in found[lookahead - 1]) or not lookahead
    return np.array(found[lookahead:])


@pytest.mark.parametrize("options", STREAMS.values(), ids=STREAMS)
def test_exported_step_equals_the_network(options, make_walk):
    """Both forms of the step against the whole sequence at once, past several turns of the window."""
    lifter, sequence = TorchLifter(network_of(**options), "test"), make_walk(30)
    step = StreamStep(lifter.network)
    windowed = options["attention"] in ("local", "softmax") and not any(
        options is STREAMS[name] for name in ("own", "by head", "shared maps", "reversible")
    )
    assert isinstance(step.core, WindowedCore if windowed else RecurrentCore)
    joints, root, sigma = split_outputs(answers(lifter, sequence)[:, 0])
    expected = lifter.lift(sequence, 2)
    np.testing.assert_allclose(joints, expected.joints[:-2], atol=1e-5)
    np.testing.assert_allclose(root, expected.root[:-2], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(sigma, expected.sigma[:-2], rtol=1e-4)


@pytest.mark.parametrize(("people", "lookahead"), [(1, 0), (3, 0), (1, 4), (4, 13)])
def test_onnx_runtime_equals_torch(shipped_like, exported, make_walk, people, lookahead):
    sequence = make_walk(40, skeleton="blazepose33", joints=33)
    fast = answers(exported, sequence, people, lookahead, BLAZEPOSE33)
    slow = answers(shipped_like, sequence, people, lookahead, BLAZEPOSE33)
    np.testing.assert_allclose(fast, slow, rtol=1e-4, atol=1e-4)
    assert np.abs(np.diff(fast, axis=0)).max() > 0.01


def test_onnx_stream_handles_people_coming_and_going(exported, make_walk):
    """Other people and their order make no difference."""
    sequence, stream = make_walk(24), LifterStream(exported, H36M17, Camera.of((640, 480)))
    states = {name: stream.new_person() for name in "abc"}
    alone = answers(exported, sequence, lookahead=0)[:, 0]
    found = []
    for frame in range(24):
        order = ["a"] if frame < 5 else ["b", "a"] if frame < 10 else ["a", "c", "b"] if frame < 18 else ["c", "a"]
        xy, score = (np.stack([part[frame]] * len(order)) for part in (sequence.keypoints, sequence.scores))
        answer = stream.step([states[name] for name in order], xy, score, float(sequence.times[frame]))
        found.append(answer[order.index("a")])
    np.testing.assert_allclose(np.array(found), alone, rtol=1e-4, atol=1e-4)


def test_onnx_file_is_used_only_for_its_checkpoint(shipped_like, tmp_path):
    retrained = network_of(**WINDOW, dim=24)
    save_checkpoint(retrained, tmp_path / "stream.safetensors")
    (tmp_path / "stream.onnx").write_bytes(shipped_like.path.with_suffix(".onnx").read_bytes())
    assert isinstance(load_lifter(tmp_path / "stream.safetensors"), TorchLifter)


@pytest.mark.slow
def test_recurrent_onnx_step_keeps_its_initial_state(make_walk, tmp_path):
    """State that does not begin with zeros, and comes back whole."""
    save_checkpoint(network_of(**STREAMS["performer"], depth=1), tmp_path / "stream.safetensors")
    by_torch = TorchLifter.load(tmp_path / "stream.safetensors")
    export_lifter(by_torch.network, "onnx", tmp_path / "stream.onnx", by_torch.sha256)
    by_onnx, sequence = load_lifter(tmp_path / "stream.safetensors"), make_walk(12)
    assert isinstance(by_onnx, OnnxLifter)
    np.testing.assert_allclose(by_onnx.lift(sequence).joints, by_torch.lift(sequence).joints, atol=1e-4)


def test_onnx_file_without_state_metadata_is_rejected(shipped_like, monkeypatch):
    graph = OnnxGraph(shipped_like.path.with_suffix(".onnx"))
    for memory in ("", "[]", '{"fill": {"nothing": 0}, "pinned": 0}'):
        monkeypatch.setitem(graph.metadata, "memory", memory)
        with pytest.raises(PoseError, match="lacks its cache sizes; export it again"):
            OnnxLifter(graph, "mine").step  # noqa: B018
    monkeypatch.setitem(graph.metadata, "format", "something else")
    with pytest.raises(PoseError, match="was not written by pose-export"):
        OnnxLifter(graph, "mine")


def test_invalid_onnx_file_is_named(tmp_path):
    (tmp_path / "x.onnx").write_bytes(b"nothing")
    with pytest.raises(PoseError, match=r"x\.onnx: not a readable ONNX model"):
        OnnxGraph(tmp_path / "x.onnx")


@pytest.mark.parametrize("options", [{}, STREAMS["local"], STREAMS["performer"]], ids=["offline", "local", "performer"])
def test_torchscript_equals_torch(options, tmp_path):
    path = tmp_path / "lifter.ts"
    assert export_lifter(network_of(**options), "torchscript", path) < TOLERANCE
    assert [file.name for file in tmp_path.iterdir()] == ["lifter.ts"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, STREAMS["dilated"], STREAMS["performer"]], ids=["offline", "local", "performer"]
)
@pytest.mark.parametrize("file_format", ["onnx", "torch-export"])
def test_every_export_format_works_for_every_lifter(options, file_format, tmp_path):
    assert export_lifter(network_of(**options), file_format, tmp_path / "lifter") < TOLERANCE
    assert (tmp_path / "lifter").is_file()


WHOLE = [
    *({"attention": name} for name in ("local", "adaptive-span", "blocks", "transformer-xl", "reformer")),
    {"attention": "sparse", "attention_options": {"stride": 4, "pattern": "fixed", "arrange": "heads"}},
    {"shared_maps": 2},
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [*(STREAMS[name] for name in ("own", "by head", "adaptive", "sparse", "xl", "blocks", "shared maps")), *WHOLE],
    ids=str,
)
def test_every_structure_can_be_exported(options, tmp_path):
    assert export_lifter(network_of(**options), "onnx", tmp_path / "lifter.onnx") < TOLERANCE


def test_failed_export_leaves_no_file(tmp_path, monkeypatch):
    """A writer that writes another network is noticed."""

    def write_other(module, example, path, metadata):
        other = network_of()
        torch.nn.init.normal_(other.head.bias)
        exchange._write_torchscript(exchange.WindowLift(other), example, path, metadata)

    monkeypatch.setitem(exchange._WRITERS, "torchscript", write_other)
    with pytest.raises(PoseError, match="not written, its outputs differ"):
        export_lifter(network_of(), "torchscript", tmp_path / "lifter.ts")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def sensor(tmp_path_factory):
    """A network with random corrections of centimetres, and its exported file: here, where the exporter is loaded."""
    torch.manual_seed(3)
    network = SensorNetwork(LifterConfig(dim=16, depth=1, heads=2, expansion=1, window=24, hop=12)).eval()
    torch.nn.init.normal_(network.head.weight, std=0.005)
    path = tmp_path_factory.mktemp("sensor") / "sensor.onnx"
    export_sensor(network, path)
    return network, path


def test_exported_sensor_network_equals_the_network(sensor):
    network, path = sensor
    joints, times = motion(frames=20)  # one window
    scores = np.ones(joints.shape[:3])
    features, view = describe(joints, scores, times, np.array([True]))
    with torch.inference_mode():
        corrections, sigma = network(torch.from_numpy(features), torch.from_numpy(times))
    found, spread = SensorCorrector(path).correct(joints[0], scores[0], times[0], kinect=True)
    np.testing.assert_allclose(found, restore(view, corrections.numpy())[0], atol=1e-4)
    np.testing.assert_allclose(spread, sigma.numpy()[0], rtol=1e-3)


def test_long_recordings_of_sensors_with_gaps_keep_their_frames(sensor):
    joints, times = motion(frames=130)
    times = times[0] + np.where(np.arange(130) < 60, 0, 2.0) + np.where(np.arange(130) < 126, 0, 2.0)
    scores = np.ones((130, 17))
    scores[70:75, 6] = 0
    found, sigma = SensorCorrector(sensor[1]).correct(joints[0], scores, times, kinect=False)
    assert np.isfinite(found).all()
    assert (sigma > 0).all()
    assert np.linalg.norm(found - joints[0], axis=-1).max() < 0.2
    np.testing.assert_array_equal(found[126:], joints[0, 126:])  # too short for the network
