"""Lifters in the laboratory: what they answer with, what they learn of their attention, and what a step costs."""

import pytest
import torch
from waving import trial_setup

from pose.lifting.config import LifterConfig
from pose.lifting.format import OUTPUTS
from pose.training.batches import TensorBatch
from pose.training.laboratory.studies import lifters, step_cost

TINY = {"dim": 8, "depth": 1, "heads": 2, "expansion": 2}
FEW = {"steps": 2, "frames": 9, "sequences": 2, "evaluated": 1}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    return trial_setup(tmp_path_factory.mktemp("mocap"))


def test_cube_coordinates_do_not_use_rays(given):
    batches = given.motion().training(9, 2, 0)
    seen, other = (TensorBatch.of(batches(step)).observe() for step in range(2))
    network = lifters.CubeLifter(LifterConfig(**TINY))
    outputs = torch.randn(2, 9, OUTPUTS)
    cube, elsewhere = network.decode(outputs, seen), network.decode(outputs, other)
    torch.testing.assert_close(cube.joints, elsewhere.joints)
    assert (cube.joints[..., 0, :] == 0).all()
    assert not torch.allclose(cube.root, elsewhere.root)
    rays, other_rays = (lifters.LifterNetwork(LifterConfig(**TINY)).decode(outputs, o) for o in (seen, other))
    assert not torch.allclose(rays.joints, other_rays.joints)
    torch.testing.assert_close(rays.sigma, cube.sigma)


@pytest.mark.parametrize("output", lifters.OUTPUT_FORMS)
def test_every_form_is_trained_and_measured(given, output):
    results = lifters.run(lifters.LifterSettings(model=TINY, output=output, **FEW), given).results
    assert 0 < results["gt"] < 1000
    assert "alpha" not in results
    with pytest.raises(ValueError, match="'sphere' is not one of rays, cube"):
        lifters.LifterSettings(model=TINY, output="sphere")


def test_learnt_spans_and_alphas_are_reported(given):
    spans = TINY | {"attention": "adaptive-span", "attention_options": {"span": 2.0}}
    results = lifters.run(lifters.LifterSettings(model=spans, **FEW), given).results
    assert results["span"] == pytest.approx(0.5, abs=0.1)  # a quarter of the longest, where it begins
    assert results["span"] <= results["span_longest"]
    free = TINY | {"attention": "composed", "attention_options": {"distribution": "entmax"}}
    assert lifters.run(lifters.LifterSettings(model=free, **FEW), given).results["alpha"] == pytest.approx(
        1.5, abs=0.05
    )


WINDOW = TINY | {"depth": 2, "attention": "local", "attention_options": {"window": 4}}


@pytest.mark.parametrize(
    "model", [TINY, WINDOW, {"model": "gru", "dim": 8, "depth": 1}], ids=["softmax", "window", "gru"]
)
def test_stream_step_equals_the_whole_past(given, model):
    results = step_cost.run(step_cost.StepCostSettings(model=model, past=12, times=1), given).results
    assert 0 <= results["apart"] < 1e-5
    assert results["times"] == pytest.approx(results["anew"] / results["step"])
    with pytest.raises(ValueError, match="past must be at least 2"):
        step_cost.StepCostSettings(model=model, past=1)
