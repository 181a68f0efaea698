"""Recurrent lifters: cells against torch and loops by hand, streams against whole sequences, what is refused."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState
from torch import nn

from pose.lifting.checkpoint import load_checkpoint, save_checkpoint
from pose.lifting.config import RECURRENT, LifterConfig
from pose.lifting.exchange import TOLERANCE, export_lifter
from pose.lifting.load import load_lifter
from pose.lifting.model import LifterNetwork
from pose.lifting.stream import LifterStream
from pose.lifting.torch_lifter import TorchLifter
from pose.structures.skeletons import H36M17
from pose.training.forms.recurrent import HiddenRecurrence, OutputRecurrence
from pose.training.trainer import Trainer

sys.path += [str(Path(__file__).parents[1] / "training"), str(Path(__file__).parents[1] / "datasets")]
from motion import waving_clip
from training_fixtures import source_of, train_config

STREAMING = [name for name in RECURRENT if not name.startswith("bi")]
DIM = 12


def lifter_of(model: str, **changes) -> TorchLifter:
    torch.manual_seed(0)
    network = LifterNetwork(LifterConfig(**({"model": model, "dim": DIM, "depth": 2} | changes)))
    nn.init.normal_(network.head.weight, std=0.1)
    return TorchLifter(network, model)


def stepped(cell, x):
    kept = tuple(x.new_zeros(len(x), cell.size) for _ in cell.cache_fields)
    answers = []
    for t in range(x.shape[1]):
        answer, kept = cell.step(x[:, t], kept)
        answers.append(answer)
    return torch.stack(answers, dim=1)


@pytest.mark.parametrize(("kind", "oracle"), [("rnn", nn.RNNCell), ("lstm", nn.LSTMCell), ("gru", nn.GRUCell)])
def test_recurrent_cells_equal_torch(kind, oracle):
    cell, x = HiddenRecurrence(kind, DIM).double(), torch.randn(3, 7, DIM, dtype=torch.float64)
    for parameter in cell.parameters():
        nn.init.normal_(parameter, std=0.5)
    alone = oracle(DIM, DIM).double()
    alone.load_state_dict({name.removesuffix("_l0"): value for name, value in cell.layer.state_dict().items()})
    state, expected = None, []
    for t in range(7):
        state = alone(x[:, t], state)
        expected.append(state[0] if kind == "lstm" else state)
    expected = torch.stack(expected, dim=1)
    torch.testing.assert_close(cell(x), expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(stepped(cell, x), expected, rtol=0, atol=1e-12)


def test_output_recurrence_depends_only_on_its_last_output():
    cell, x = OutputRecurrence(DIM).double(), torch.randn(2, 5, DIM, dtype=torch.float64)
    output, expected = torch.zeros(2, cell.width, dtype=torch.float64), []
    for t in range(5):
        hidden = torch.tanh(x[:, t] @ cell.seen.weight.T + cell.seen.bias + output @ cell.back.weight.T)
        output = hidden @ cell.out.weight.T + cell.out.bias
        expected.append(output)
    torch.testing.assert_close(cell(x), torch.stack(expected, dim=1), rtol=0, atol=1e-12)
    torch.testing.assert_close(stepped(cell, x), torch.stack(expected, dim=1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_cells_start_orthogonal_with_open_forget_gate(kind):
    cell = HiddenRecurrence(kind, DIM)
    for gate in cell.layer.weight_hh_l0.split(DIM):
        torch.testing.assert_close(gate @ gate.T, torch.eye(DIM), rtol=0, atol=1e-5)
    bias = (cell.layer.bias_ih_l0 + cell.layer.bias_hh_l0).unflatten(0, (-1, DIM))
    assert bias.sum() == (DIM if kind == "lstm" else 0)
    assert kind != "lstm" or (bias[1] == 1).all()  # torch's order of gates: input, forget, new, output


def test_time_reversed_swaps_the_halves_of_a_birnn():
    cell, x = HiddenRecurrence("gru", DIM, bidirectional=True).double(), torch.randn(2, 6, DIM, dtype=torch.float64)
    weights = cell.layer.state_dict()
    cell.layer.load_state_dict(  # the same weights in both directions
        {name: weights[name.removesuffix("_reverse")] for name in weights}
    )
    forward, backward = cell(x).chunk(2, dim=-1)
    turned_forward, turned_backward = cell(x.flip(1)).chunk(2, dim=-1)
    torch.testing.assert_close(turned_forward.flip(1), backward)
    torch.testing.assert_close(turned_backward.flip(1), forward)
    assert not torch.allclose(forward, backward)


@pytest.mark.parametrize("model", STREAMING)
@pytest.mark.parametrize("lookahead", [0, 3])
def test_stream_equals_the_whole_sequence(model, lookahead, make_walk):
    lifter, sequence = lifter_of(model, streaming=True), make_walk(40, skeleton="h36m17")
    whole = lifter.lift(sequence, lookahead)
    stream = LifterStream(lifter, H36M17, sequence.camera, lookahead)
    person = stream.new_person()
    size = sum(array.size for array in person.arrays.values())
    answers = []
    for keypoints, scores, time in zip(sequence.keypoints, sequence.scores, sequence.times, strict=True):
        answers += stream.step([person], keypoints[None], scores[None], time)
    answers = np.stack([answer for answer in answers if answer is not None])
    assert len(answers) == 40 - lookahead
    np.testing.assert_allclose(answers[:, :51], whole.joints[: len(answers)].reshape(-1, 51), atol=1e-5)
    assert sum(array.size for array in person.arrays.values()) == size


@pytest.mark.parametrize("model", STREAMING)
def test_stream_depends_on_the_whole_past_only(model, make_walk):
    lifter, sequence = lifter_of(model, streaming=True), make_walk(30)
    before = lifter.lift(sequence).joints
    changed = sequence.keypoints.copy()
    changed[10] += 20
    after = lifter.lift(sequence.__class__(changed, np.ones((30, 17), np.float32), sequence.times, sequence.camera,
                                           sequence.skeleton)).joints  # fmt: skip
    same = lifter.lift(sequence.__class__(sequence.keypoints, np.ones((30, 17), np.float32), sequence.times,
                                          sequence.camera, sequence.skeleton)).joints  # fmt: skip
    np.testing.assert_array_equal(after[:10], same[:10])
    assert (np.abs(after[10:12] - same[10:12]) > 1e-6).any()
    assert before.shape == after.shape


@pytest.fixture
def fresh_accelerator():
    """accelerate keeps the first precision that a process trains at, which is another one in other tests."""
    AcceleratorState._reset_state(reset_partial_state=True)
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.mark.usefixtures("fresh_accelerator")
@pytest.mark.parametrize("model", RECURRENT)
def test_every_recurrent_model_trains_and_round_trips(model, tmp_path, make_walk):
    config = LifterConfig(model=model, dim=DIM, depth=2, streaming=model == "gru")
    # At bf16, which is the default of a recipe: the cells stay at single precision.
    trainer = Trainer(
        train_config(model=config, steps=3, precision="bf16"), source_of([waving_clip()], tmp_path), tmp_path
    )
    before = [parameter.detach().clone() for parameter in trainer.bare_network.parameters()]
    trainer.run()
    changed = [not torch.equal(a, b) for a, b in zip(before, trainer.bare_network.parameters(), strict=True)]
    assert all(changed)
    save_checkpoint(trainer.averaged_network, tmp_path / "a.safetensors")
    back, sequence = load_checkpoint(tmp_path / "a.safetensors"), make_walk(30)
    expected = TorchLifter(trainer.averaged_network, "a").lift(sequence).joints
    np.testing.assert_array_equal(TorchLifter(back, "b").lift(sequence).joints, expected)
    assert np.isfinite(expected).all()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gru", "lstm", "rnn-output"])
def test_a_stream_exports_to_onnx(model, tmp_path, make_walk):
    lifter, sequence = lifter_of(model, streaming=True), make_walk(20)
    save_checkpoint(lifter.network, tmp_path / "a.safetensors")
    lifter = TorchLifter.load(tmp_path / "a.safetensors")
    assert export_lifter(lifter.network, "onnx", tmp_path / "a.onnx", lifter.sha256) < TOLERANCE
    exported = load_lifter(tmp_path / "a.safetensors")
    stream = LifterStream(exported, H36M17, sequence.camera)
    person, whole = stream.new_person(), lifter.lift(sequence)
    for t in range(20):
        (answer,) = stream.step([person], sequence.keypoints[None, t], sequence.scores[None, t], sequence.times[t])
        np.testing.assert_allclose(answer[:51], whole.joints[t].ravel(), atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"model": "magic"}, "'magic' is not one of transformer, "),
        ({"model": "lstm", "attention": "local"}, "attention: only for transformers"),
        ({"model": "lstm", "heads": 2}, "heads: only for transformers"),
        ({"model": "gru", "norm": "none", "init": "t-fixup"}, "which model gru does not have"),
        ({"model": "bilstm", "streaming": True}, "cannot stream; use lstm"),
        ({"model": "bigru", "dim": 7}, "must be even"),
    ],
)
def test_invalid_options_give_the_reason(settings, complaint):
    with pytest.raises(ValueError, match=complaint):
        LifterConfig(**settings)


def test_rnn_gradients_vanish_before_lstm_gradients():
    """The norm of d h_T / d x_t over the distance: what a cell can learn from the past when training begins."""

    def reach(kind: str) -> float:
        torch.manual_seed(0)
        cell, x = HiddenRecurrence(kind, 32), torch.randn(8, 60, 32, requires_grad=True)
        cell(x)[:, -1].square().sum().backward()
        size = x.grad.norm(dim=(0, 2))
        return float(size[20] / size[-1])

    assert reach("lstm") > 10 * reach("rnn")
