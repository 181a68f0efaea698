"""A network reduced to some outputs gives the same numbers for them."""

import numpy as np
import pytest

from pose.errors import PoseError
from pose.networks.litert import LiteRTModel


@pytest.mark.parametrize("outputs", [(0, 1, 3), (3,), (2, 0), (0, 1, 2, 3, 4)])
def test_earlier_outputs_are_not_overwritten(weights_dir, rng, outputs):
    path = weights_dir / "blazepose-landmark-lite.tflite"
    whole, part = LiteRTModel(path, 1), LiteRTModel(path, 1, outputs)
    whole.input()[:] = part.input()[:] = rng.random((1, 256, 256, 3), np.float32)
    everything = [output.copy() for output in whole.run()]
    kept = [output.copy() for output in part.run()]
    assert len(kept) == len(outputs)
    for position, values in zip(outputs, kept, strict=True):
        np.testing.assert_array_equal(values, everything[position])


def test_missing_model_file_is_named(tmp_path):
    with pytest.raises(PoseError, match=r"nothing\.tflite: No such file"):
        LiteRTModel(tmp_path / "nothing.tflite", 1)


@pytest.mark.parametrize("length", [0, 3, 100, 5000])
@pytest.mark.parametrize("outputs", [None, (0,)])
def test_truncated_model_file_is_named(weights_dir, tmp_path, length, outputs):
    path = tmp_path / "cut.tflite"
    path.write_bytes((weights_dir / "blazepose-landmark-lite.tflite").read_bytes()[:length])
    with pytest.raises(PoseError, match=r"cut\.tflite: not a readable LiteRT model"):
        LiteRTModel(path, 1, outputs)
