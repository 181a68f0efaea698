"""What is learnt of a span, what it costs, and what it saves."""

import pytest
import torch
from attention_forms import DIM, FORMS, HEADS, Form, for_each, make_batch

from pose.lifting.attention import build_attention, layer_penalty
from pose.training.attention.layouts import Band


def layer_of(**options):
    torch.manual_seed(0)
    return build_attention("adaptive-span", DIM, HEADS, **options).double()


@for_each(form for form in FORMS if form.name == "adaptive-span" and form.options)
def test_block_form_equals_the_full_masked_form(form: Form) -> None:
    layer, batch = form.build(), make_batch(length=150)
    for masked in (False, True):
        context = batch.context(masked=masked)
        q, k, v = layer.project(batch.x, context)
        got = layer.banded(q, k, v, context, Band.of(int(layer.reach), form.causal))
        torch.testing.assert_close(got, layer.weights(batch.x, context) @ v, rtol=0, atol=1e-12)
        chosen = layer.out_proj(layer.merge(got))
        whole = layer.mix(batch.x, context)
        torch.testing.assert_close(whole, chosen, rtol=0, atol=1e-12)
        with torch.no_grad():
            torch.testing.assert_close(layer.mix(batch.x, context), chosen, rtol=0, atol=1e-12)


@for_each(form for form in FORMS if form.name == "adaptive-span")
def test_fused_kernel_equals_the_reference(form: Form) -> None:
    layer, batch = form.build(), make_batch(length=20)
    for masked in (False, True):
        want = layer(batch.x, batch.context(masked=masked))
        with torch.no_grad():
            torch.testing.assert_close(layer(batch.x, batch.context(masked=masked)), want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
def test_the_whole_span_without_a_ramp_is_softmax(causal: bool) -> None:
    layer = layer_of(causal=causal, span=100.0, ramp=1e-9, rate=1)
    torch.nn.init.ones_(layer.share)
    plain = build_attention("softmax", DIM, HEADS, causal=causal).double()
    plain.load_state_dict({name: value for name, value in layer.state_dict().items() if name != "share"})
    batch = make_batch(length=40)
    torch.testing.assert_close(layer(batch.x, batch.context()), plain(batch.x, batch.context()), rtol=0, atol=1e-12)


def test_the_ramp_multiplies_the_weights_after_the_softmax() -> None:
    layer, batch = layer_of(span=1.0, ramp=0.2, causal=True), make_batch(rows=1, length=12)
    layer.share.data = torch.tensor([0.0, 0.3], dtype=torch.float64)
    weights = layer.weights(batch.x, batch.context(masked=False))
    apart = (batch.times[0, :, None] - batch.times[0]).abs()
    assert weights[0, 0][apart > 0.2].eq(0).all()
    assert weights[0, 1][apart > 0.5].eq(0).all()
    assert weights[0, 0][(apart < 0.2).tril()].gt(0).all()  # even a head of span 0 sees as far as the ramp


def test_span_penalty_shortens_and_usefulness_lengthens_spans() -> None:
    batch = make_batch(rows=2, length=20)
    target = batch.x[:, :1].expand(-1, 20, -1)

    def trained(cost: float) -> float:
        layer = layer_of(span=2.0, ramp=0.2, cost=cost, causal=True)
        optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
        for step in range(60):
            layer.begin_step(step, torch.Generator())
            loss = (layer(batch.x, batch.context(masked=False)) - target).square().mean()
            penalty = layer_penalty(torch.nn.Sequential(layer, layer))  # a layer that is shared pays once
            assert penalty is not None
            optimizer.zero_grad()
            (loss + penalty).backward()
            optimizer.step()
        layer.begin_step(60, torch.Generator())
        return layer.spans.mean().item()

    assert trained(100.0) == 0
    assert trained(0.0) > 0.5


def test_stream_cache_length_equals_the_learnt_span() -> None:
    layer = layer_of(span=4.0, ramp=0.5, causal=True)
    before = layer.init_cache(1, device="cpu", dtype=torch.float32)
    torch.nn.init.zeros_(layer.share)
    after = layer.init_cache(1, device="cpu", dtype=torch.float32)
    assert [before[0].shape[2], after[0].shape[2]] == [1 + 90, 1 + 30]


def test_only_adaptive_span_has_a_penalty() -> None:
    assert layer_penalty(build_attention("softmax", DIM, HEADS)) is None
