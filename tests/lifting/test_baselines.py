"""Baseline lifters: what a frame of each depends on, and that they train, round-trip and export like other lifters."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pose.lifting.attention import Context
from pose.lifting.checkpoint import load_checkpoint
from pose.lifting.config import LifterConfig
from pose.lifting.exchange import TOLERANCE, export_lifter
from pose.lifting.model import LifterNetwork
from pose.lifting.stream import LifterStream
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.skeletons import H36M17
from pose.training.objectives.pretraining import check_objective
from pose.training.trainer import Trainer

sys.path += [str(Path(__file__).parents[1] / "training"), str(Path(__file__).parents[1] / "datasets")]
from motion import waving_clip
from training_fixtures import source_of, train_config

MLP = {"model": "mlp", "dim": 16, "depth": 2}
CONVOLUTION = {"model": "convolution", "dim": 16, "depth": 3, "norm": "none"}
DUAL = {"tokens": "dual", "dim": 16, "depth": 2, "heads": 2}
every_baseline = pytest.mark.parametrize("model", [MLP, CONVOLUTION, DUAL], ids=["mlp", "convolution", "dual"])


def network_of(model) -> LifterNetwork:
    torch.manual_seed(0)
    network = LifterNetwork(LifterConfig(**model))
    torch.nn.init.normal_(network.head.weight if hasattr(network.head, "weight") else network.head.of_joint.weight)
    return network.eval()


def blocks_applied(network, x, times):
    context = Context.from_times(times, network.head_dim)
    with torch.no_grad():
        for block in network.blocks:
            x = block(x, context)
    return x


@pytest.mark.parametrize(("model", "reach"), [(MLP, 0), (CONVOLUTION, 1 + 3 + 9)], ids=["mlp", "convolution"])
def test_a_frame_depends_on_the_frames_in_reach(model, reach):
    network, times = network_of(model), torch.arange(41)[None] / 30
    x = torch.randn(1, 41, 16)
    changed = x.clone()
    changed[:, 20] += 1
    moved = (blocks_applied(network, changed, times) - blocks_applied(network, x, times)).abs().amax(dim=(0, 2)) > 1e-6
    assert moved.nonzero().ravel()[[0, -1]].tolist() == [20 - reach, 20 + reach]


def test_dual_tokens_weigh_both_orders():
    network, times = network_of(DUAL | {"depth": 1}), torch.arange(6).expand(2, -1) / 30
    block, x, context = network.blocks[0], torch.randn(2, 6, 17, 16), Context.from_times(times, 8)

    def over_time(layer, tokens):
        each = [layer(tokens[:, :, joint], context) for joint in range(17)]
        return torch.stack(each, dim=2)

    with torch.no_grad():
        first = over_time(block.temporal[0], block.spatial[0](x))
        second = block.spatial[1](over_time(block.temporal[1], x))
        for bias, want in (((50.0, 0.0), first), ((0.0, 50.0), second), ((0.0, 0.0), (first + second) / 2)):
            block.fusion.weight.zero_()
            block.fusion.bias.copy_(torch.tensor(bias))
            torch.testing.assert_close(block(x, context), want, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(first, second, atol=1e-2)


@every_baseline
def test_a_baseline_trains_and_round_trips(model, tmp_path):
    source = source_of([waving_clip()], tmp_path)
    losses: list[dict[str, float]] = []
    trainer = Trainer(train_config(model=LifterConfig(**model), steps=3), source, tmp_path)
    trainer.run(lambda step, figures: losses.append(figures))
    assert all(np.isfinite(figures["loss"]) for figures in losses)
    saved = load_checkpoint(tmp_path / "last.safetensors").state_dict()
    for name, tensor in trainer.averaged_network.state_dict().items():
        assert saved[name].equal(tensor), name


@pytest.mark.slow
@every_baseline
def test_a_baseline_exports_to_onnx(model, tmp_path):
    assert export_lifter(network_of(model), "onnx", tmp_path / "a.onnx") < TOLERANCE


def test_a_stream_of_single_frames_equals_the_whole_sequence(make_walk):
    lifter, sequence = TorchLifter(network_of(MLP | {"streaming": True}), "test"), make_walk(8, skeleton="h36m17")
    stream = LifterStream(lifter, H36M17, sequence.camera, 0)
    person = stream.new_person()
    answers = [
        stream.step([person], keypoints[None], scores[None], time)[0]
        for keypoints, scores, time in zip(sequence.keypoints, sequence.scores, sequence.times, strict=True)
    ]
    np.testing.assert_allclose(np.stack(answers)[:, :51], lifter.lift(sequence).joints.reshape(-1, 51), atol=2e-4)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (CONVOLUTION | {"streaming": True}, "convolution is offline"),
        (CONVOLUTION | {"norm": "pre"}, "norm: none"),
        (DUAL | {"streaming": True}, "dual is offline"),
        (DUAL | {"adaptive_depth": True}, "adaptive_depth: needs tokens"),
        (MLP | {"heads": 2}, "heads: only for transformers"),
    ],
)
def test_what_a_baseline_lacks_is_refused(changes, complaint):
    with pytest.raises(ValueError, match=complaint):
        LifterConfig(**changes)


@pytest.mark.parametrize(("model", "objective"), [(CONVOLUTION, "next"), (DUAL, "masked")])
def test_objectives_that_a_baseline_cannot_have_are_refused(model, objective):
    with pytest.raises(ValueError, match=f"objective {objective}"):
        check_objective(LifterConfig(**model), objective)
