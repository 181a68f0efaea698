"""Chunks of frames that hash alike, and what becomes of them when one chunk holds all."""

import pytest
import torch
from attention_forms import DIM, HEADS, make_batch

from pose.lifting.attention import build_attention


def built(**options):
    torch.manual_seed(0)
    return build_attention("reformer", DIM, HEADS, **options).double()


@pytest.mark.parametrize("masked", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize(("chunk", "rounds"), [(4, 1), (4, 3), (16, 2), (7, 4)])
def test_chunked_attention_equals_all_pairs_of_shared_chunks(chunk: int, rounds: int, masked: bool) -> None:
    layer, batch = built(chunk=chunk, rounds=rounds), make_batch(length=90)
    context = batch.context(masked=masked)
    x = batch.x if not masked else batch.x.where(batch.valid[..., None], 0)
    values = layer.split(layer.v_proj(x))
    want = layer.out_proj(layer.merge(layer.weights(x, context) @ values))
    got = layer(x, context)
    rows = batch.valid if masked else torch.ones_like(batch.valid)
    torch.testing.assert_close(got[rows], want[rows], rtol=0, atol=1e-12)


@pytest.mark.parametrize("rounds", [1, 3])
def test_single_chunk_equals_softmax_with_shared_queries_and_keys(rounds: int) -> None:
    layer, batch = built(chunk=40, rounds=rounds), make_batch(length=40)
    context = batch.context(masked=False)
    weights = layer.weights(batch.x, context)
    raw = layer.split(layer.qk_proj(batch.x))
    apart = (batch.times[:, :, None] - batch.times[:, None, :])[:, None]
    hertz = 0.1 * 100 ** (torch.arange(4, dtype=torch.float64) / 3)
    a = torch.complex(*raw.chunk(2, dim=-1))
    turned = torch.polar(torch.ones_like(apart[..., None]), 2 * torch.pi * hertz * apart[..., None])
    products = (a[:, :, :, None] * a[:, :, None].conj() * turned).real.sum(-1) / raw.norm(dim=-1)[:, :, None]
    itself = torch.eye(40, dtype=torch.bool)
    want = products.masked_fill(itself, -1e5).softmax(dim=-1)
    torch.testing.assert_close(weights, want, rtol=0, atol=1e-12)
    assert weights[:, :, itself].eq(0).all()  # a frame takes nothing of itself where others are


def test_isolated_frame_attends_to_itself() -> None:
    layer, batch = built(chunk=1, rounds=1), make_batch(length=1)
    assert layer.weights(batch.x, batch.context(masked=False)).eq(1).all()


def test_frames_with_similar_queries_share_chunks() -> None:
    """80 frames of eight kinds in eight chunks, of which each frame sees two: by chance it would meet a quarter."""
    layer, batch = built(chunk=10, rounds=1), make_batch(rows=1, length=80)
    kinds = torch.randn(8, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).repeat(10, 1)
    met = layer.weights(kinds[None], batch.context(masked=False)) > 0
    alike = (torch.arange(80)[:, None] - torch.arange(80)) % 8 == 0
    others = ~torch.eye(80, dtype=torch.bool)
    assert met[..., alike & others].double().mean() > 0.7
    assert met[..., ~alike].double().mean() < 0.2


def test_hash_directions_depend_on_the_step() -> None:
    one, other = built(), built()
    one.begin_step(3, torch.Generator().manual_seed(7))
    torch.manual_seed(99)
    other.begin_step(3, torch.Generator().manual_seed(7))
    assert one.directions.equal(other.directions)
    assert not one.directions.equal(built().directions)


def test_replayed_pass_repeats_the_hash() -> None:
    from dataclasses import replace

    layer, batch = built(chunk=4, rounds=2), make_batch(length=30)
    context = batch.context()
    want = layer(batch.x, context)
    layer.begin_step(1, torch.Generator().manual_seed(1))  # other directions, which a replay does not ask
    torch.testing.assert_close(layer(batch.x, replace(context, replay=True)), want, rtol=0, atol=0)
    assert not torch.allclose(layer(batch.x, context), want)
