"""What enters and leaves a stack without LayerNorm, changed one at a time."""

import pytest
import torch
from torch import nn
from waving import trial_setup

from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork
from pose.training.laboratory.studies import without_norm

FREE = {"dim": 8, "depth": 2, "heads": 2, "expansion": 1, "norm": "none", "init": "t-fixup"}


@pytest.fixture
def changed():
    """A network, the features of 50 frames, and both after a change."""

    def made(**settings):
        torch.manual_seed(0)
        network, features = LifterNetwork(LifterConfig(**FREE)), 3 + torch.randn(50, 75)
        before = network.embed(features)
        without_norm.change(network, without_norm.WithoutNormSettings(model=FREE, **settings), features)
        return network, before, network.embed(features)

    return made


def test_centred_tokens_lose_their_mean_and_nothing_else(changed):
    _, before, after = changed(centred=True)
    torch.testing.assert_close(after, before - before.mean(dim=0))


def test_tokens_have_the_size_that_is_asked_for(changed):
    _, before, after = changed(token_size=0.3)
    assert after.square().mean().sqrt().item() == pytest.approx(0.3)
    torch.testing.assert_close(after / after.norm(), before / before.norm())


def test_final_norm_is_as_configured(changed):
    assert isinstance(changed()[0].norm, nn.Identity)
    assert isinstance(changed(last_norm="layer")[0].norm, nn.LayerNorm)
    pre = LifterNetwork(LifterConfig(**FREE | {"norm": "pre", "init": "xavier"}))
    settings = without_norm.WithoutNormSettings(model=pre.config.to_dict(), last_norm="none")
    without_norm.change(pre, settings, torch.randn(2, 75))
    assert isinstance(pre.norm, nn.Identity)


def test_trial_reports_token_differences(tmp_path):
    given = trial_setup(tmp_path)
    few = {"steps": 2, "frames": 9, "sequences": 2, "evaluated": 1, "optimizer": "adam", "weight_decay": 0.0}
    plain, centred = (
        without_norm.run(
            without_norm.WithoutNormSettings(model=FREE, warmup="none", **few, **change),
            given,
        ).results
        for change in ({}, {"centred": True, "token_size": 0.4})
    )
    assert 0 < plain["differs"] < 0.9
    assert centred["differs"] == pytest.approx(1)
    assert centred["tokens"] == pytest.approx(0.4)
    assert set(without_norm.COLUMNS) < set(plain)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"last_norm": "batch"}, "last_norm: 'batch' is not one of"),
        ({"token_size": -1.0}, "token_size: must be at least 0"),
        ({"model": {"model": "gru"}}, "a transformer of frames"),
    ],
)
def test_unsupported_changes_are_rejected(wrong, complaint):
    with pytest.raises(ValueError, match=complaint):
        without_norm.WithoutNormSettings(**({"model": FREE} | wrong))
