"""The exported step that ships beside the stream's weights: live use takes it, and it says what torch says."""

import numpy as np
import pytest

from pose.lifter.backends import OnnxStep
from pose.lifter.predict import Lifter
from pose.lifter.step import StreamStep
from pose.lifter.stream import LifterStream, step_backend
from pose.skeletons import BLAZEPOSE33


@pytest.fixture(scope="module")
def lifter():
    return Lifter.load("stream")


def test_live_use_takes_the_exported_step(lifter):
    """If this fails: pose-export stream --format onnx --out pose/models/stream.onnx --overwrite"""
    backend = step_backend(lifter, StreamStep(lifter.network), "auto")
    assert isinstance(backend, OnnxStep)
    assert backend.metadata["checkpoint_sha256"] == lifter.sha256


@pytest.mark.parametrize("lookahead", [0, 4])
def test_it_answers_what_torch_answers(lifter, make_walk, lookahead):
    sequence = make_walk(80, skeleton="blazepose33", joints=33)
    answers = {}
    for backend in ("onnx", "torch"):
        stream = LifterStream(lifter, BLAZEPOSE33, (640, 480), lookahead=lookahead, backend=backend)
        people = [stream.new_person(), stream.new_person()]
        seen = zip(sequence.keypoints, sequence.scores, sequence.times, strict=True)
        found = [stream.step(people, np.stack([xy, xy + 9]), np.stack([s, s]), float(t)) for xy, s, t in seen]
        answers[backend] = np.array(found[lookahead:])
    joints = {backend: answer[..., :51] for backend, answer in answers.items()}
    np.testing.assert_allclose(joints["onnx"], joints["torch"], atol=1e-4)
    np.testing.assert_allclose(answers["onnx"][..., 51:], answers["torch"][..., 51:], rtol=1e-4, atol=1e-4)
