"""Two sequences that look at each other."""

from typing import Any

import numpy as np
import pytest
import torch
from attention_forms import DIM, HEADS, make_batch
from torch import Tensor

from pose.lifting.attention import Context
from pose.training.attention.co_attention import AlternatingSummaries, CoAttention, ParallelSummaries

HIDDEN = 6
SUMMARIES = [ParallelSummaries, AlternatingSummaries]


def sequences() -> tuple[Tensor, Tensor]:
    return make_batch(length=7, seed=1).x, make_batch(length=5, seed=2).x


def made(kind: Any, *arguments: object) -> Any:
    torch.manual_seed(0)
    return kind(*arguments).double()


def softmax(scores: Any) -> Any:
    e = np.exp(scores - scores.max())
    return e / e.sum()


def numbers(layer: torch.nn.Module) -> dict[str, Any]:
    return {name: value.detach().numpy() for name, value in layer.named_parameters()}


def test_parallel_summaries_equal_their_definition() -> None:
    layer, (x, z) = made(ParallelSummaries, DIM, HIDDEN), sequences()
    w = numbers(layer)
    for row, (got_x, got_z) in enumerate(zip(*layer(x, z), strict=True)):
        a, b = x[row].numpy(), z[row].numpy()
        c = np.tanh([[b[s] @ w["affinity.weight"] @ a[t] for t in range(7)] for s in range(5)])
        x_said, z_said = a @ w["x_hidden.weight"].T, b @ w["z_hidden.weight"].T
        x_scores = [w["x_score.weight"][0] @ np.tanh(x_said[t] + sum(c[s, t] * z_said[s] for s in range(5)))
                    for t in range(7)]  # fmt: skip
        z_scores = [w["z_score.weight"][0] @ np.tanh(z_said[s] + sum(c[s, t] * x_said[t] for t in range(7)))
                    for s in range(5)]  # fmt: skip
        np.testing.assert_allclose(got_x.detach(), softmax(np.array(x_scores)) @ a, atol=1e-12)
        np.testing.assert_allclose(got_z.detach(), softmax(np.array(z_scores)) @ b, atol=1e-12)


def test_alternating_summaries_equal_their_definition() -> None:
    layer, (x, z) = made(AlternatingSummaries, DIM, HIDDEN), sequences()
    w = numbers(layer)

    def step(number: int, tokens: Any, guide: Any) -> Any:
        told = w[f"guide.{number - 1}.weight"] @ guide if number else 0
        hidden = [w[f"seen.{number}.weight"] @ token + w[f"seen.{number}.bias"] + told for token in tokens]
        return softmax(np.array([w[f"score.{number}.weight"][0] @ np.tanh(unit) for unit in hidden])) @ tokens

    for row, (got_x, got_z) in enumerate(zip(*layer(x, z), strict=True)):
        a, b = x[row].numpy(), z[row].numpy()
        want_x = step(1, a, step(0, b, None))
        np.testing.assert_allclose(got_x.detach(), want_x, atol=1e-12)
        np.testing.assert_allclose(got_z.detach(), step(2, b, want_x), atol=1e-12)


def test_parallel_co_attention_is_equivariant_to_swapping_inputs() -> None:
    layer, other, (x, z) = made(ParallelSummaries, DIM, HIDDEN), made(ParallelSummaries, DIM, HIDDEN), sequences()
    other.affinity.weight.data = layer.affinity.weight.data.T.clone()
    for name in ("hidden", "score"):
        for one, two in (("x", "z"), ("z", "x")):
            other.get_submodule(f"{one}_{name}").load_state_dict(layer.get_submodule(f"{two}_{name}").state_dict())
    for got, want in zip(other(z, x), reversed(layer(x, z)), strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", SUMMARIES)
def test_masked_tokens_have_no_effect(kind: Any) -> None:
    layer, (x, z) = made(kind, DIM, HIDDEN), sequences()
    x_valid, z_valid = torch.arange(7).expand(2, 7) < 5, torch.arange(5).expand(2, 5) < 3
    got = layer(
        x.masked_fill(~x_valid[..., None], torch.nan), z.masked_fill(~z_valid[..., None], 1e6), x_valid, z_valid
    )
    for summary, want in zip(got, layer(x[:, :5], z[:, :3]), strict=True):
        torch.testing.assert_close(summary, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", SUMMARIES)
def test_absent_sequence_leaves_the_other_summary_unchanged(kind: Any) -> None:
    layer, (x, z) = made(kind, DIM, HIDDEN), sequences()
    nothing = torch.zeros(2, 5, dtype=torch.bool)
    alone, empty = layer(x, z, None, nothing)
    assert empty.eq(0).all()
    torch.testing.assert_close(layer(x, torch.zeros_like(z), None, nothing)[0], alone, rtol=0, atol=0)
    assert alone.isfinite().all()
    assert not torch.allclose(layer(x, z)[0], alone)


def contexts(lengths: tuple[int, int], absent: bool = False) -> tuple[Context, Context]:
    first, second = make_batch(length=lengths[0], seed=1), make_batch(length=lengths[1], seed=2)
    valid = torch.zeros(2, lengths[1], dtype=torch.bool) if absent else None
    return (
        Context.from_times(first.times, DIM // HEADS, None, torch.float64),
        Context.from_times(second.times, DIM // HEADS, valid, torch.float64),
    )


def test_only_parallel_co_attention_is_symmetric() -> None:
    (x, z), (x_at, z_at) = sequences(), contexts((7, 5))
    for order, alike in (("parallel", True), ("alternating", False)):
        layer, other = made(CoAttention, DIM, HEADS, order), made(CoAttention, DIM, HEADS, order)
        other.first.load_state_dict(layer.second.state_dict())
        other.second.load_state_dict(layer.first.state_dict())
        want, got = layer(x, x_at, z, z_at), other(z, z_at, x, x_at)
        assert got[1].shape == x.shape
        assert torch.allclose(got[1], want[0], atol=1e-12) == alike
        assert torch.allclose(got[0], want[1], atol=1e-12) == alike


@pytest.mark.parametrize("order", ["parallel", "alternating"])
def test_absent_camera_leaves_the_other_output_unchanged(order: str) -> None:
    (x, z), (x_at, z_at) = sequences(), contexts((7, 5), absent=True)
    got, _ = made(CoAttention, DIM, HEADS, order)(x, x_at, z.fill_(torch.nan), z_at)
    torch.testing.assert_close(got, x, rtol=0, atol=0)


def test_unknown_order_is_rejected() -> None:
    with pytest.raises(ValueError, match="order must be one of parallel, alternating, got 'both'"):
        CoAttention(DIM, HEADS, "both")
