"""What `build_attention` accepts, shares and refuses."""

from pathlib import Path
from typing import Any

import pytest
import torch
from attention_forms import DIM, HEADS, make_batch

from pose.lifting.attention import ATTENTIONS, build_attention, build_attentions


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
