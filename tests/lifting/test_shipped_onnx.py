"""The exported files that ship beside the weights: the CPU takes them, and they say what torch says."""

from dataclasses import replace

import numpy as np
import pytest

from pose.lifting.load import load_lifter
from pose.lifting.names import SHIPPED
from pose.lifting.onnx_lifter import OnnxLifter
from pose.lifting.stream import LifterStream
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.camera import Camera
from pose.structures.skeletons import BLAZEPOSE33

STREAMS = ("stream", "sliding")
TOLERANCE = 1e-4  # m; of sigma relative to it


@pytest.fixture(scope="module", params=SHIPPED)
def both(request):
    """The same lifter by ONNX Runtime and by torch."""
    return load_lifter(request.param), TorchLifter.load(request.param)


def assert_equal_answers(got, expected):
    np.testing.assert_allclose(got.joints, expected.joints, atol=TOLERANCE)
    np.testing.assert_allclose(got.root, expected.root, atol=TOLERANCE, rtol=TOLERANCE)
    np.testing.assert_allclose(got.sigma, expected.sigma, rtol=TOLERANCE)


@pytest.mark.parametrize("name", SHIPPED)
def test_cpu_uses_the_onnx_file(name):
    """If this fails: pose-export NAME --format onnx --out pose/models/NAME.onnx --overwrite"""
    lifter = load_lifter(name)
    assert isinstance(lifter, OnnxLifter)
    assert lifter.sha256 == TorchLifter.load(name).sha256
    assert lifter.streaming == (name != "offline")
    assert lifter.windows == TorchLifter.load(name).windows


@pytest.mark.parametrize(
    ("skeleton", "joints", "known"), [("h36m17", 17, False), ("blazepose33", 33, True)], ids=["as it is", "derived"]
)
def test_onnx_equals_torch_for_every_input(both, make_walk, skeleton, joints, known):
    by_onnx, by_torch = both
    sequence = make_walk(90, skeleton=skeleton, joints=joints)
    sequence.scores[:3] = 0  # nothing to carry over yet
    sequence.scores[40:60] = 0
    sequence.keypoints[sequence.scores == 0] = np.nan
    if known:
        camera = Camera.of((640, 480), sequence.camera.matrix * [[1.4], [1.3], [1]])
        sequence = replace(sequence, camera=camera)
    expected = by_torch.lift(sequence)
    assert_equal_answers(by_onnx.lift(sequence), expected)
    assert np.isfinite(expected.joints).all()


@pytest.mark.parametrize("name", STREAMS)
def test_onnx_equals_torch_with_lookahead(make_walk, name):
    sequence = make_walk(40)
    by_onnx, by_torch = (load(name).lift(sequence, 13) for load in (load_lifter, TorchLifter.load))
    assert_equal_answers(by_onnx, by_torch)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("lookahead", [0, 4])
def test_onnx_live_stream_equals_torch(make_walk, lookahead, name):
    sequence = make_walk(45, skeleton="blazepose33", joints=33)
    answers = {}
    for backend, lifter in (("onnx", load_lifter(name)), ("torch", TorchLifter.load(name))):
        stream = LifterStream(lifter, BLAZEPOSE33, Camera.of((640, 480)), lookahead=lookahead)
        people = [stream.new_person(), stream.new_person()]
        seen = zip(sequence.keypoints, sequence.scores, sequence.times, strict=True)
        found = [stream.step(people, np.stack([xy, xy + 9]), np.stack([s, s]), float(t)) for xy, s, t in seen]
        answers[backend] = np.array(found[lookahead:])
    joints = {backend: answer[..., :51] for backend, answer in answers.items()}
    np.testing.assert_allclose(joints["onnx"], joints["torch"], atol=1e-4)
    np.testing.assert_allclose(answers["onnx"][..., 51:], answers["torch"][..., 51:], rtol=1e-4, atol=1e-4)
