"""What `build_attention` accepts, shares and refuses; two sequences that look at each other."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from attention_forms import DIM, HEADS, make_batch
from torch import Tensor

from pose.lifting.attention import ATTENTIONS, Context, build_attention, build_attentions
from pose.training.attention.co_attention import AlternatingSummaries, CoAttention, ParallelSummaries


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("soft", {}, "'soft' is not one of softmax, local"),
        ("linformer", {"causal": True}, "no causal form"),
        ("fnet", {"causal": True}, "no causal form"),
        ("fastformer", {"causal": True}, "no causal form"),
        ("fastformer-cumulative", {}, "only a causal form"),
        ("fnet", {"streaming": True}, "fnet attention cannot stream; those that can: softmax, local"),
        ("linformer", {"streaming": True, "causal": True}, "cannot stream"),
        ("local", {"streaming": True}, "needs causal=True"),
        ("linformer", {"length": 244}, "at most 243 frames here, but the model uses 244"),
        ("linformer", {"length": 28, "max_length": 27}, "at most 27 frames"),
        ("linformer", {"sharing": "all"}, "sharing must be one of none, headwise, kv, layer, got 'all'"),
        ("linformer", {"compression": 0}, "compression must be from 1"),
        ("local", {"windows": 3}, "no option 'windows'; it has window, dilation, global_tokens, global_projections"),
        ("fnet", {"window": 3}, "no option 'window'; it has none"),
        ("local", {"window": 0}, "at least 1"),
        ("local", {"dilation": 0}, "at least 1"),
        ("local", {"global_tokens": -1}, "at least 0"),
        ("local", {"dilation": "1,0"}, "at least 1"),
        ("local", {"dilation": "1,2,3"}, "one for each of 2 heads, got '1,2,3'"),
        ("local", {"dilation": "1,wide"}, "whole number, or one for each head as in 1,1,2,4, got '1,wide'"),
        ("local", {"dilation": 1.5}, "whole number, or one for each head"),
        ("local", {"global_projections": "own"}, "set global_tokens to at least 1"),
        ("local", {"global_projections": "other"}, "must be one of shared, own, got 'other'"),
        ("sparse", {"pattern": "random"}, "pattern must be one of strided, fixed, got 'random'"),
        ("sparse", {"arrange": "both"}, "arrange must be one of merged, heads, layers, got 'both'"),
        ("sparse", {"pattern": "fixed", "stride": 4, "summary": 5}, "summary 1 to stride, got 4 and 5"),
        ("sparse", {"summary": 2}, "summary: only for the fixed pattern"),
        ("sparse", {"causal": True, "stride": 8, "memory": 7}, "at least the stride, 8 frames, got 7"),
        ("sparse", {"memory": 27}, "only for causal attention"),
        ("adaptive-span", {"span": "long"}, "span must be a number, got 'long'"),
        ("adaptive-span", {"span": 1e5, "rate": 100_000}, "maximum: 100000"),
        ("adaptive-span", {"span": 0}, "span and ramp must be above 0 s"),
        ("adaptive-span", {"ramp": float("nan")}, "span and ramp must be above 0 s"),
        ("blocks", {"block": 0}, "block must be at least 1 frame"),
        ("blocks", {"beyond": -1}, "beyond at least 0"),
        ("transformer-xl", {"memory": 27}, "only for causal attention"),
        ("transformer-xl", {"causal": True, "segment": 0}, "at least 1 frame, got 81 and 0"),
        ("reformer", {"chunk": 0}, "at least 1, got 0 and 2"),
        ("reformer", {"causal": True}, "no causal form"),
        ("softmax", {"memory": 27}, "only for causal attention"),
        ("softmax", {"causal": True, "memory": 0}, "at least 1 frame"),
        ("performer", {"blocks": 0}, "at least 1"),
        ("composed", {"score": "euclid"}, "score must be one of scaled-dot, dot, cosine"),
        ("composed", {"distribution": "max"}, "distribution must be one of softmax, sigmoid"),
        ("composed", {"position": "far"}, "position must be one of global, local, predicted"),
        ("composed", {"position": "local", "window": 0}, "at least 1 frame"),
        ("composed", {"window": 9}, "window applies to the positions local, predicted and causal"),
        ("composed", {"score": "deep", "distribution": "coda"}, "the score 'deep' does not define"),
        ("multi-dimensional", {"memory": 5}, "only for causal attention"),
        ("key-value", {"window": 0}, "window must be at least 1 frame"),
        ("composed", {"distribution": "ratio"}, "those of 'scaled-dot' can be"),
        ("composed", {"time": "absolute"}, "time must be one of rotary, sinusoidal, learnt, none"),
        ("composed", {"max_length": 40}, "max_length requires the score 'location'"),
        ("composed", {"time": "learnt", "max_length": 0}, "at least 1 frame"),
        ("composed", {"time": "learnt", "length": 244}, "at most 243 frames"),
        ("composed", {"score": "location", "max_length": 27, "length": 28}, "at most 27 frames"),
        ("composed", {"time": "learnt", "causal": True, "streaming": True}, "time learnt cannot stream"),
        ("composed", {"score": "feature", "causal": True, "streaming": True}, "score feature cannot stream"),
    ],
)
def test_invalid_configurations_are_rejected_with_the_reason(name: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        build_attention(name, DIM, HEADS, **options)


@pytest.mark.parametrize(("dim", "heads"), [(16, 3), (16, 0), (4, 8), (12, 4)])
def test_dimensions_that_do_not_divide_are_refused(dim: int, heads: int) -> None:
    with pytest.raises(ValueError, match=r"dim must be a multiple of heads|even number of features"):
        build_attention("softmax", dim, heads)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_a_longer_sequence_than_declared_is_refused(name: str) -> None:
    kind = ATTENTIONS[name]
    layer = build_attention(name, DIM, HEADS, causal=not kind.capabilities.bidirectional)
    batch = make_batch(rows=1, length=300, dtype=torch.float32)
    if layer.capabilities.max_length is None:
        assert layer(batch.x, batch.context()).isfinite().all()
    else:
        with pytest.raises(ValueError, match="at most 243 frames, got 300"):
            layer(batch.x, batch.context())


@pytest.mark.parametrize("name", [name for name, kind in ATTENTIONS.items() if kind.capabilities.bidirectional])
def test_only_the_causal_form_has_a_cache(name: str) -> None:
    with pytest.raises(ValueError, match="causal=False cannot stream"):
        build_attention(name, DIM, HEADS).init_cache(1, device="cpu", dtype=torch.float32)


@pytest.mark.parametrize("name", [name for name, kind in ATTENTIONS.items() if kind.capabilities.streaming])
def test_streaming_mechanisms_build_their_causal_form(name: str) -> None:
    layer = build_attention(name, DIM, HEADS, causal=True, streaming=True, length=10_000)
    assert layer.init_cache(3, device="cpu", dtype=torch.float32)[0].shape[0] == 3


@pytest.mark.parametrize(
    ("sharing", "shapes", "across_layers"),
    [
        ("none", {(HEADS, 60, 243): 2}, False),
        ("headwise", {(60, 243): 2}, False),
        ("kv", {(60, 243): 1}, False),
        ("layer", {(60, 243): 1}, True),
    ],
)
def test_linformer_shares_the_declared_projections(
    sharing: str, shapes: dict[tuple[int, ...], int], across_layers: bool
) -> None:
    layers = build_attentions("linformer", 3, DIM, HEADS, {"sharing": sharing})

    def rows(module: torch.nn.Module) -> list[torch.nn.Parameter]:
        return [p for name, p in module.named_parameters() if name.endswith("_rows")]

    for layer in layers:
        assert {shape: [tuple(p.shape) for p in rows(layer)].count(shape) for shape in shapes} == shapes
        assert len(rows(layer)) == sum(shapes.values())
    assert (layers[0].key_rows is layers[2].key_rows) == across_layers
    assert len(rows(torch.nn.ModuleList(layers))) == (1 if across_layers else 3 * sum(shapes.values()))


def test_the_documented_capabilities_are_the_declared_ones() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "attention.md").read_text(encoding="utf-8")
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in text.splitlines() if "| O(" in line]
    declared = []
    for name, kind in ATTENTIONS.items():
        can = kind.capabilities
        flags = (can.padding, can.bidirectional, can.causal, can.streaming, can.relative_time)
        declared.append((name, *("yes" if flag else "no" for flag in flags), str(can.max_length or "any"), can.cost))
    assert rows == declared


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
