"""Segments that remember the last ones, and what their scores come to without them."""

import pytest
import torch
from attention_forms import DIM, HEADS, Form, make_batch

from pose.lifting.attention import Context, build_attentions


def built(**options):
    return Form("transformer-xl", True, options).build()


@pytest.mark.parametrize("masked", [False, True], ids=["whole", "gaps"])
def test_segments_with_memory_equal_one_pass(masked: bool) -> None:
    batch = make_batch(length=40)
    whole, pieces = built(memory=40, segment=40), built(memory=40, segment=6)
    context = batch.context(masked=masked)
    torch.testing.assert_close(pieces(batch.x, context), whole(batch.x, context), rtol=0, atol=1e-12)


def test_memory_receives_no_gradient() -> None:
    layer, batch = built(memory=9, segment=6), make_batch(length=20)
    x = batch.x.clone().requires_grad_()
    y = layer(x, batch.context(masked=False))
    (gradient,) = torch.autograd.grad(y[:, 12:18].square().sum(), x)
    assert gradient[:, :12].eq(0).all()
    assert gradient[:, 12:18].ne(0).any(dim=-1).all()
    assert gradient[:, 18:].eq(0).all()


def test_a_segment_of_a_stack_is_a_step_of_truncated_backpropagation() -> None:
    """Two layers over the whole clip against two layers fed segment by segment with detached memories by hand."""
    layers = [layer.double() for layer in build_attentions(
        "transformer-xl", 2, DIM, HEADS, {"memory": 20, "segment": 5}, causal=True
    )]  # fmt: skip
    batch = make_batch(rows=1, length=10)

    def context(frames: slice) -> Context:
        return batch.frames(frames).context(masked=False)

    y = batch.x
    for layer in layers:
        y = y + layer(y, context(slice(0, 10)))
    want = torch.autograd.grad(y[:, 5:].square().sum(), list(layers[0].parameters()), retain_graph=True)
    with torch.no_grad():
        first = batch.x[:, :5]
        memories = [first]
        first = first + layers[0](first, context(slice(0, 5)))
        memories.append(first)
    x = batch.x[:, 5:]
    for layer, memory in zip(layers, memories, strict=True):
        layer.segment = 10
        x = x + layer(torch.cat((memory, x), dim=1), context(slice(0, 10)))[:, 5:]
    got = torch.autograd.grad(x.square().sum(), list(layers[0].parameters()))
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
def test_without_biases_scores_are_plain_dot_products(causal: bool) -> None:
    layer, plain = Form("transformer-xl", causal).build(), Form("softmax", causal).build()
    for name in ("distance_proj.weight", "content_bias", "distance_bias"):
        torch.nn.init.zeros_(layer.get_parameter(name))
    layer.load_state_dict(plain.state_dict(), strict=False)
    batch = make_batch(length=30)
    at_once = Context.from_times(torch.zeros_like(batch.times), DIM // HEADS, batch.valid, torch.float64)
    torch.testing.assert_close(layer(batch.x, batch.context()), plain(batch.x, at_once), rtol=0, atol=1e-12)


def test_layers_share_the_position_biases() -> None:
    layers = build_attentions("transformer-xl", 3, DIM, HEADS, {})
    for name in ("content_bias", "distance_bias"):
        assert len({id(layer.get_parameter(name)) for layer in layers}) == 1
    assert len({id(layer.get_parameter("distance_proj.weight")) for layer in layers}) == 3
