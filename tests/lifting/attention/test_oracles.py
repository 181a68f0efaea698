"""Every mechanism equals its definition, and its fast path the definition of all pairs."""

import numpy as np
import pytest
import torch
from attention_case import Case
from attention_definitions import ORACLES
from attention_forms import DIM, FORMS, HEADS, Form, for_each, make_batch

from pose.lifting.attention import build_attentions
from pose.lifting.attention.local import HeadWindows, attention_by_dilation, banded_attention
from pose.training.attention import scores
from pose.training.attention.blocks import block_attention
from pose.training.attention.sparse import sparse_attention

HIDDEN_UNITS = ("multi-dimensional", "key-value", "key-value-predict")  # for each pair of frames
BY_KEYS = {"sparse": sparse_attention, "blocks": block_attention}


@for_each(FORMS)
def test_mechanism_equals_its_definition(form: Form) -> None:
    layer, batch = form.build(), make_batch()
    got = layer(batch.x, batch.context()).detach().numpy()
    for row in range(len(got)):
        case = Case(form, layer, batch, row)
        want = np.where(case.valid[:, None], ORACLES[form.name](case), 0.0)
        np.testing.assert_allclose(got[row], want, rtol=0, atol=1e-10)


@for_each(form for form in FORMS if form.name == "local")
def test_local_in_blocks_equals_the_mask_of_all_pairs(form: Form) -> None:
    layer = form.build()
    banded = attention_by_dilation if isinstance(layer.window, HeadWindows) else banded_attention
    for length in (1, 33, 300):
        batch = make_batch(length=length)
        q, k, v = layer.project(batch.x, batch.context())
        for valid in (None, batch.valid):
            mask = layer.window.mask(length, valid, batch.x.device)
            want = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            torch.testing.assert_close(banded(q, k, v, layer.window, valid), want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", [form for form in FORMS if form.name in HIDDEN_UNITS], ids=str)
def test_query_chunks_equal_the_full_computation(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    layer, batch = form.build(), make_batch(length=30)

    def answer(pairs: int) -> tuple[torch.Tensor, ...]:
        monkeypatch.setattr(scores, "PAIRS_PER_BLOCK", pairs)
        y = layer(batch.x, batch.context())
        return y, *torch.autograd.grad(y.square().sum(), list(layer.parameters()), allow_unused=True)

    torch.testing.assert_close(answer(4 * 30), answer(30 * 30), rtol=0, atol=1e-11)


@pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
def test_a_window_over_everything_is_softmax(causal: bool) -> None:
    batch = make_batch(length=30)
    local, plain = (
        Form(name, causal, options).build() for name, options in (("local", {"window": 30}), ("softmax", {}))
    )
    local.load_state_dict(plain.state_dict())
    torch.testing.assert_close(local(batch.x, batch.context()), plain(batch.x, batch.context()), rtol=0, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
def test_separate_global_projections_with_equal_weights_equal_shared_ones(causal: bool) -> None:
    options, batch = {"window": 3, "global_tokens": 2}, make_batch(length=30)
    shared, own = (Form("local", causal, options | {"global_projections": how}).build() for how in ("shared", "own"))
    state = shared.state_dict()
    own.load_state_dict(state | {f"global_{name}": value for name, value in state.items() if "out" not in name})
    torch.testing.assert_close(own(batch.x, batch.context()), shared(batch.x, batch.context()), rtol=0, atol=1e-12)


@for_each(form for form in FORMS if form.name in BY_KEYS)
def test_gathered_keys_equal_the_full_mask(form: Form) -> None:
    layer = form.build()
    for length in (1, 33, 150):
        batch = make_batch(length=length)
        q, k, v = layer.project(batch.x, batch.context())
        for valid in (None, batch.valid):
            want = layer.summed(q, k, v, layer.window.mask(length, valid, batch.x.device))
            torch.testing.assert_close(BY_KEYS[form.name](q, k, v, layer.window, valid), want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pattern", ["strided", "fixed"])
def test_two_sparse_layers_reach_every_earlier_frame(pattern: str) -> None:
    """(1 + far) (1 + near) > 0 for s <= t (Child et al., 2019), where every layer sees one of the two."""
    layers = build_attentions(
        "sparse", 2, DIM, HEADS, {"arrange": "layers", "stride": 5, "pattern": pattern}, causal=True
    )
    near, far = (layer.window.mask(40, None, torch.device("cpu")).long() + torch.eye(40).long() for layer in layers)
    assert not torch.equal(near, far)
    reached = (far @ near > 0) if pattern == "strided" else (near @ far @ near > 0)
    assert reached.tril().equal(torch.ones(40, 40).tril().bool())
    assert not reached.triu(1).any()


def test_visible_range_depends_on_the_position_in_the_block() -> None:
    """beyond to beyond + size - 1 frames back, not half a window everywhere, and never all of a longer sequence."""
    mask = Form("blocks", True, {"block": 4, "beyond": 4}).build().window.mask(20, None, torch.device("cpu"))
    seen = mask.sum(dim=1)
    assert seen[8:16].tolist() == [5, 6, 7, 8] * 2
    assert seen[:4].tolist() == [1, 2, 3, 4]
