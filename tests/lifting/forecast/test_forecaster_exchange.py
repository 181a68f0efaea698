"""Forecasters as ONNX files: what they say, for how many, and who gets none."""

import numpy as np
import pytest
import torch
from stirred import stirred

from pose.errors import PoseError
from pose.lifting.forecast.build import save_forecaster
from pose.lifting.forecast.config import FEATURES, PAST_STEPS, ForecasterConfig
from pose.lifting.forecast.exchange import EXPORTED, export_forecaster, folded
from pose.lifting.forecast.runtime import OnnxForecaster
from pose.networks.weights import sha256_of

SMALL = {"dim": 16, "depth": 2, "decoder_depth": 2, "heads": 2, "mlp_dim": 16, "mlp_depth": 2}


def network(kind, **more):
    return stirred(ForecasterConfig(kind=kind, **(SMALL | more)), by=0.1)


def asked(people, moments):
    drawn = torch.Generator().manual_seed(people)
    return torch.randn(people, PAST_STEPS, FEATURES, generator=drawn), torch.rand(people, moments, generator=drawn)


@pytest.mark.parametrize("kind", EXPORTED)
@pytest.mark.parametrize("norm", ["pre", "post", "none"])
@pytest.mark.parametrize("heads", [1, 4])
def test_folded_network_equals_the_original(kind, norm, heads):
    whole = network(kind, norm=norm, heads=heads)
    before = {name: value.clone() for name, value in whole.state_dict().items()}
    given = asked(3, 5)
    with torch.inference_mode():
        pairs = list(zip(folded(whole)(*given), whole(*given), strict=True))
    assert all((found - expected).abs().max() < 1e-5 for found, expected in pairs)
    assert pairs[0][1].abs().max() > 0.1
    assert all((value == before[name]).all() for name, value in whole.state_dict().items())


@pytest.fixture(scope="module")
def blended(tmp_path_factory):
    """A network of both parts, and its checkpoint with its ONNX file beside it: an export takes seconds."""
    whole, checkpoint = (
        network("blended", depth=1, decoder_depth=1, mlp_depth=1),
        tmp_path_factory.mktemp("blended") / "small.safetensors",
    )
    save_forecaster(whole, checkpoint)
    assert export_forecaster(whole, checkpoint.with_suffix(".onnx"), sha256_of(checkpoint)) < 1e-5
    return whole, checkpoint


@pytest.mark.slow
def test_onnx_forecaster_equals_torch_for_any_batch(blended):
    whole, checkpoint = blended
    exported = OnnxForecaster.beside(checkpoint, "small")
    assert exported is not None
    for people, moments in ((1, 1), (2, 7), (11, 1)):
        given = asked(people, moments)
        with torch.inference_mode():
            expected = whole(*given)
        for found, true in zip(exported.run_network(*(array.numpy() for array in given)), expected, strict=True):
            assert np.abs(found - true.numpy()).max() < 1e-5


def test_autoregressive_forecasters_are_not_exported(tmp_path):
    with pytest.raises(PoseError, match="only single-pass forecasters"):
        export_forecaster(network("gru"), tmp_path / "gru.onnx")
    assert not list(tmp_path.iterdir())
