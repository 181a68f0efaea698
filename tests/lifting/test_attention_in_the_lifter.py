"""Attention in the lifter: what layers share, times of frames, what is drawn again, and which options are errors."""

import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from pose.lifting.attention import ATTENTIONS
from pose.lifting.checkpoint import load_checkpoint, save_checkpoint
from pose.lifting.config import LifterConfig
from pose.lifting.model import LifterNetwork
from pose.lifting.torch_lifter import TorchLifter
from pose.training.attention import PerformerAttention
from pose.training.trainer import Trainer

sys.path += [str(Path(__file__).parents[1] / "training"), str(Path(__file__).parents[1] / "datasets")]
from motion import waving_clip
from training_fixtures import killed, resumed, source_of, train_config

OFFLINE = [name for name, kind in ATTENTIONS.items() if kind.capabilities.bidirectional]
SHARED = LifterConfig(dim=16, depth=3, heads=2, attention="linformer", attention_options={"sharing": "layer"})


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return source_of([waving_clip()], tmp_path_factory.mktemp("motion"))


def randomized(config: LifterConfig) -> LifterNetwork:
    """No weight of it is zero, as after training."""
    network = LifterNetwork(config)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return network


def test_linformer_can_share_one_matrix_in_the_whole_stack(tmp_path, make_walk):
    network = randomized(SHARED)
    rows = [p for name, p in network.named_parameters() if name.endswith("_rows")]
    assert [tuple(p.shape) for p in rows] == [(60, 243)]
    save_checkpoint(network, tmp_path / "a.safetensors")
    back = load_checkpoint(tmp_path / "a.safetensors")
    assert len([name for name, _ in back.named_parameters() if name.endswith("_rows")]) == 1
    sequence = make_walk(30)
    expected = TorchLifter(network, "test").lift(sequence).joints
    np.testing.assert_array_equal(TorchLifter(back, "test").lift(sequence).joints, expected)


@pytest.mark.parametrize("name", OFFLINE)
def test_every_mechanism_uses_frame_order(name, make_walk):
    """Without the time, one whose frames are a set would answer a motion played backwards with the answers reversed."""
    lifter, sequence = (
        TorchLifter(randomized(LifterConfig(dim=16, depth=1, heads=2, attention=name)), "test"),
        make_walk(20),
    )
    forwards = replace(sequence, times=np.arange(20) / 30, scores=np.ones_like(sequence.scores))
    backwards = replace(forwards, keypoints=sequence.keypoints[::-1].copy())

    def difference() -> float:
        return float(np.abs(lifter.lift(forwards).joints - lifter.lift(backwards).joints[::-1]).max())

    assert difference() > 1e-3
    if lifter.network.clock is not None:
        torch.nn.init.zeros_(lifter.network.clock.weight)
        assert name != "fastformer" or difference() < 1e-5


@pytest.mark.parametrize("name", OFFLINE)
def test_time_origin_does_not_change_the_lifter(name, make_walk):
    # Random features do not turn with queries and keys, so the default rotation of performer depends on the origin.
    options = {"rotation": "numerator"} if name == "performer" else {}
    config = LifterConfig(dim=16, depth=1, heads=2, attention=name, attention_options=options)
    lifter, sequence = TorchLifter(randomized(config), "test"), make_walk(20)
    later = replace(sequence, times=sequence.times + 86_400)
    np.testing.assert_allclose(lifter.lift(later).joints, lifter.lift(sequence).joints, atol=1e-4)


def test_random_features_are_redrawn_deterministically(source, tmp_path):
    model = LifterConfig(
        dim=16, depth=2, heads=2, attention="performer", attention_options={"redraw_every": 2, "blocks": 1}
    )
    config = train_config(model=model, steps=5)
    seen: list[list[torch.Tensor]] = []

    def features(trainer: Trainer) -> list[torch.Tensor]:
        layers = [m for m in trainer.bare_network.modules() if isinstance(m, PerformerAttention)]
        return [layer.random_features.clone() for layer in layers]

    whole = Trainer(config, source, tmp_path / "whole")
    whole.run(lambda step, figures: seen.append(features(whole)))
    assert not seen[0][0].equal(seen[0][1])
    changed = [not after[0].equal(before[0]) for before, after in pairwise(seen)]
    assert changed == [False, True, False, True]

    killed(config, source, tmp_path / "killed", last=3)
    again = resumed(config, source, tmp_path / "killed")
    for got, expected in zip(features(again), features(whole), strict=True):
        assert got.equal(expected)
    saved = load_checkpoint(tmp_path / "killed" / "last.safetensors")
    for name, tensor in load_checkpoint(tmp_path / "whole" / "last.safetensors").state_dict().items():
        assert saved.state_dict()[name].equal(tensor), name


def test_span_penalty_shortens_spans_in_training(source, tmp_path):
    options = {"span": 2.0, "cost": 50.0}
    model = LifterConfig(dim=16, depth=2, heads=2, attention="adaptive-span", attention_options=options)
    seen: list[float] = []
    trainer = Trainer(train_config(model=model, steps=4), source, tmp_path)
    trainer.run(lambda step, figures: seen.append(figures["layers"]))
    assert seen[0] <= 2 * 50 * 2 * 0.25  # two layers of spans of a quarter of 2 s
    assert seen[-1] < seen[0]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"attention": "linformer", "streaming": True}, "linformer attention cannot stream; those that can: softmax"),
        ({"attention": "fastformer-cumulative"}, "only a causal form"),
        ({"attention": "local", "attention_options": {"window": "wide"}}, "window must be a whole number, got 'wide'"),
        ({"attention": "local", "attention_options": {"causal": True}}, "causal follows from the model"),
        ({"attention": "performer", "attention_options": {"redraw_every": -1}}, "redraw_every at least 0"),
    ],
)
def test_unsupported_mechanism_options_are_rejected(changes, why):
    with pytest.raises(ValueError, match=why):
        LifterNetwork(LifterConfig(dim=16, depth=1, heads=2, **changes))


@pytest.mark.parametrize("distribution", ["hard", "straight-through"])
def test_hard_attention_training_resumes_exactly(distribution, source, tmp_path):
    model = LifterConfig(
        dim=16, depth=2, heads=2, attention="composed", attention_options={"distribution": distribution}
    )
    config = train_config(model=model, steps=6)
    parts: list[set[str]] = []
    whole = Trainer(config, source, tmp_path / "whole")
    whole.run(lambda step, figures: parts.append(set(figures)))
    assert all(("choices" in names) == (distribution == "hard") for names in parts)

    killed(config, source, tmp_path / "killed", last=3)
    resumed(config, source, tmp_path / "killed")
    saved = load_checkpoint(tmp_path / "killed" / "last.safetensors")
    for name, tensor in load_checkpoint(tmp_path / "whole" / "last.safetensors").state_dict().items():
        assert saved.state_dict()[name].equal(tensor), name
