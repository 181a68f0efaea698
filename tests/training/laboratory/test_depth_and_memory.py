"""How deep frames go, who is left out, and how far back a stream's answer comes from."""

import numpy as np
import pytest
import torch
from torch import nn
from waving import trial_setup, waving

from pose.errors import UsageError
from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork
from pose.training.forms.adaptive import AdaptiveBlock
from pose.training.laboratory.studies import adaptive_depth, left_out, memory, without_norm
from pose.training.laboratory.studies.shipped import concatenate_batches, sequences
from pose.training.measure import lift_batch

DEEP = {"dim": 8, "depth": 4, "heads": 2, "expansion": 2, "adaptive_depth": True}
FEW = {"steps": 2, "frames": 48, "sequences": 2, "evaluated": 1}
GRU = {"model": "gru", "dim": 8, "depth": 1, "streaming": True}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    return trial_setup(tmp_path_factory.mktemp("mocap"), {"01": 4.0, "03": 3.0, "39": 24.0})


@pytest.fixture
def deep():
    torch.manual_seed(0)
    return LifterNetwork(LifterConfig(**DEEP)).eval()


def block_of(network):
    return next(module for module in network.modules() if isinstance(module, AdaptiveBlock))


def test_step_counts_equal_the_halting(given, deep):
    batch = next(given.motion().evaluation("validation", "gt", 48))
    for bias, steps in ((20.0, 1), (-20.0, 4)):  # halts at once, never
        torch.nn.init.zeros_(block_of(deep).halt.weight)
        torch.nn.init.constant_(block_of(deep).halt.bias, bias)
        joints, taken = adaptive_depth.steps_taken(deep, batch)
        assert taken.shape == batch.valid.shape
        assert (taken == steps).all()
    assert joints.shape == batch.joints.shape
    assert not block_of(deep)._forward_hooks


def test_hidden_frames_are_those_in_the_middle(given, deep, monkeypatch):
    batch = next(given.motion().evaluation("validation", "gt", 48))
    # Steps that say how many joints are seen.
    monkeypatch.setattr(adaptive_depth, "steps_taken", lambda network, b: (None, torch.from_numpy(b.scores.sum(-1))))
    hidden, shown = adaptive_depth.steps_in_gap(deep, batch)
    assert len(hidden) == len(shown) == adaptive_depth.GAP_FRAMES * len(batch.valid)  # all are longer
    assert (hidden == 0).all()
    assert (shown > 0).all()


def test_fast_frames_are_distinguished_from_slow_ones(given, deep, monkeypatch):
    def speed(network, batch):
        """Steps that are the speed itself, and no error."""
        moved = np.linalg.norm(np.diff(batch.joints + batch.root[:, :, None], axis=1), axis=-1).mean(axis=-1)
        steps = np.pad(moved / np.diff(batch.times, axis=1), ((0, 0), (1, 0)), mode="edge")
        return torch.from_numpy(batch.joints), torch.from_numpy(steps)

    monkeypatch.setattr(adaptive_depth, "steps_taken", speed)
    seen = adaptive_depth.measure_frames(deep, given.motion().evaluation("validation", "gt", 48))
    np.testing.assert_allclose(seen.steps, seen.speeds, rtol=1e-5)
    assert (seen.errors == 0).all()


def test_adaptive_depth_is_trained_and_reported(given):
    told = adaptive_depth.run(adaptive_depth.AdaptiveDepthSettings(model=DEEP, **FEW), given).results
    assert 1 <= told["steps"] <= 4
    assert set(told) >= {"gt", "steps_slow", "steps_fast", "steps_hidden", "steps_seen"}
    fixed = {**DEEP, "adaptive_depth": False, "shared_layers": True}
    assert "steps" not in adaptive_depth.run(adaptive_depth.AdaptiveDepthSettings(model=fixed, **FEW), given).results
    with pytest.raises(ValueError, match="frames: must be at least 45"):
        adaptive_depth.AdaptiveDepthSettings(model=DEEP, frames=30)


@pytest.mark.slow
def test_higher_step_cost_reduces_steps(given):
    def steps(ponder):
        settings = adaptive_depth.AdaptiveDepthSettings(model=DEEP, ponder=ponder, **{**FEW, "steps": 40, "rate": 0.02})
        return adaptive_depth.run(settings, given).results["steps"]

    assert steps(10.0) < steps(0.0)


def test_held_out_subject_does_not_affect_training(given, tmp_path):
    others = waving(tmp_path / "others.npz", {"03": 3.0, "39": 3.0}).training(9, 2, 0)
    without, everybody = given.motion().training(9, 2, 0, without="01"), given.motion().training(9, 2, 0)
    np.testing.assert_array_equal(without(3).joints, others(3).joints)
    assert (everybody(3).joints != others(3).joints).any()


def test_each_subject_is_held_out_once(given, monkeypatch):
    asked = []
    training = given.motion().training

    def watched(frames, sequences, seed, share=1.0, without=""):
        asked.append(without)
        return training(frames, sequences, seed, share, without)

    monkeypatch.setattr(given.motion(), "training", watched)
    settings = left_out.LeftOutSettings(model={"dim": 8, "depth": 1, "heads": 2}, subjects=["01", "03"], **FEW)
    results = left_out.run(settings, given).results
    assert asked == ["", "01", "03"]
    for name in settings.subjects:
        assert results[f"{name}: costs"] == results[f"{name}: trained without"] - results[f"{name}: trained with"]
    assert not list(given.state.parent.glob("*.pt"))
    with pytest.raises(ValueError, match="empty"):
        left_out.LeftOutSettings(model={"dim": 8})


def test_an_unknown_subject_is_refused(given):
    assert next(given.motion().of_subject("03", "gt", 48)).valid.any()
    with pytest.raises(UsageError, match="no training subject is named 39"):
        given.motion().of_subject("39", "gt", 48)


def test_warm_stream_equals_the_whole_stream(given, monkeypatch):
    """With all frames since the beginning of a sequence the answer is that of one pass over it."""
    batch = next(sequences(given, "gt", 324, 1))
    torch.manual_seed(0)
    network = LifterNetwork(LifterConfig.from_dict(GRU)).eval()
    wrong = lift_batch(network, batch).joints[:, 242].numpy() - batch.joints[:, 242]
    expected = 1000 * np.linalg.norm(wrong, axis=-1).mean()
    monkeypatch.setattr(memory, "TARGETS", (0,))
    assert memory.error_after(network, concatenate_batches([batch]), 243) == pytest.approx(expected, rel=1e-4)
    assert memory.error_after(network, concatenate_batches([batch]), 1) != pytest.approx(expected, rel=1e-4)


def test_the_effective_length_is_the_shortest_near_the_best():
    assert memory.effective_context({1: 120.0, 3: 101.0, 9: 100.5, 27: 100.0, 81: 100.2}) == 3
    assert memory.effective_context({1: 100.0, 3: 101.0}) == 1


def test_memory_length_of_a_trained_stream_is_reported(given):
    results = memory.run(memory.MemorySettings(model=GRU, share=1, **FEW), given).results
    assert len(results) == 2 * (len(memory.CONTEXTS) + 1)
    assert results["exact 2D, effective frames"] in memory.CONTEXTS
    with pytest.raises(ValueError, match="exactly one"):
        memory.MemorySettings()
    with pytest.raises(ValueError, match="must be a streaming model"):
        memory.MemorySettings(model={"dim": 8})


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
