"""Attention in blocks of time x joints: what each query sees, against loops, and as a stream."""

import math
from typing import Any

import pytest
import torch
from attention_forms import DIM, HEADS, Batch, make_batch
from torch import Tensor

from pose.lifting.attention import Context, build_attention
from pose.training.attention.blocks import BlockAttention, NeighbourhoodAttention

JOINTS, K = 5, DIM // HEADS
FORK = ((0, 1), (1, 2), (1, 3), (3, 4))  # a body with a joint of three bones
NEAR = [[0, 1], [0, 1, 2, 3], [1, 2], [1, 3, 4], [3, 4]]
EVERYBODY = [list(range(JOINTS))] * JOINTS
FORMS = [
    (causal, {"block": block, "beyond": beyond})
    for causal in (False, True)
    for block, beyond in ((3, 3), (2, 1), (4, 0))
]
every_form = pytest.mark.parametrize(("causal", "options"), FORMS, ids=str)
gaps = pytest.mark.parametrize("masked", [False, True], ids=["whole", "gaps"])


def build(causal: bool, options: dict[str, Any], near: list[list[int]] = NEAR) -> NeighbourhoodAttention:
    torch.manual_seed(0)
    inner = build_attention("blocks", DIM, HEADS, causal=causal, **options)
    assert isinstance(inner, BlockAttention)
    for name, parameter in inner.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3)
    return NeighbourhoodAttention(inner, near).double().eval()


def joints_of(batch: Batch) -> Tensor:
    """(B J, T, D) of other tokens for each joint."""
    generator = torch.Generator().manual_seed(7)
    return torch.randn(len(batch.x) * JOINTS, *batch.x.shape[1:], generator=generator, dtype=torch.float64)


def context_of(batch: Batch, masked: bool = False) -> Context:
    times, valid = (part.repeat_interleave(JOINTS, dim=0) for part in (batch.times, batch.valid))
    return Context.from_times(times, K, valid if masked else None, torch.float64)


def sees(layer: NeighbourhoodAttention, query: tuple[int, int], key: tuple[int, int]) -> bool:
    """Whether joint j of frame t sees joint i of frame s, by its words."""
    (t, j), (s, i) = query, key
    size, beyond = layer.inner.window.size, layer.inner.window.beyond
    first = t - t % size
    in_time = first - beyond <= s < first + size + beyond and (s <= t or not layer.causal)
    return in_time and (i == j or (i, j) in FORK or (j, i) in FORK)


def oracle(layer: NeighbourhoodAttention, x: Tensor, batch: Batch, masked: bool) -> Tensor:
    """A loop over rows, joints and frames, each with a loop over all frames and joints."""
    q, k, v = (
        project(x).unflatten(0, (-1, JOINTS))
        for project in (layer.inner.q_proj, layer.inner.k_proj, layer.inner.v_proj)
    )
    hertz = torch.logspace(-1, 1, K // 2, dtype=torch.float64)
    phases = 2 * math.pi * batch.times[..., None, None] * hertz  # (B, T, 1, K / 2)
    turn = torch.polar(torch.ones_like(phases), phases)[:, None]
    q, k = (torch.complex(*x.unflatten(-1, (HEADS, K)).chunk(2, dim=-1)) * turn for x in (q, k))
    v, out = v.unflatten(-1, (HEADS, K)), torch.zeros_like(v)
    for b, j, t in torch.cartesian_prod(*(torch.arange(n) for n in q.shape[:3])).tolist():
        if masked and not batch.valid[b, t]:
            continue
        places = [(s, i) for s in range(x.shape[1]) for i in range(JOINTS)]
        seen = [p for p in places if sees(layer, (t, j), p) and not (masked and not batch.valid[b, p[0]])]
        frames, joints = torch.tensor(seen).T
        scores = (q[b, j, t] * k[b, joints, frames].conj()).real.sum(dim=-1) / math.sqrt(K)
        out[b, j, t] = (scores.softmax(dim=0)[..., None] * v[b, joints, frames]).sum(dim=0).flatten()
    answer = layer.inner.out_proj(out).flatten(0, 1)
    return answer.where(batch.valid.repeat_interleave(JOINTS, dim=0)[..., None], 0) if masked else answer


def touched(layer: NeighbourhoodAttention, length: int) -> Tensor:
    """(T, J, T, J): whose answer (first) changes when a token (last) does."""
    x = torch.randn(JOINTS, length, DIM, dtype=torch.float64, requires_grad=True)
    times = torch.arange(length).expand(JOINTS, -1) / 30
    answer = layer(x, Context.from_times(times, K, dtype=torch.float64))
    rows = []
    for t, j in torch.cartesian_prod(torch.arange(length), torch.arange(JOINTS)).tolist():
        (gradient,) = torch.autograd.grad(answer[j, t].sum(), x, retain_graph=True)
        rows.append(gradient.abs().amax(dim=-1).T > 0)
    return torch.stack(rows).unflatten(0, (length, JOINTS))


@gaps
@every_form
@pytest.mark.parametrize("length", [1, 8])
def test_neighbourhood_attention_equals_its_definition(
    causal: bool, options: dict[str, Any], length: int, masked: bool
) -> None:
    layer, batch = build(causal, options), make_batch(length=length)
    x = joints_of(batch)
    want = oracle(layer, x, batch, masked)
    torch.testing.assert_close(layer(x, context_of(batch, masked)), want, rtol=0, atol=1e-12)


@gaps
@pytest.mark.parametrize("causal", [False, True])
def test_long_sequences_in_blocks_equal_their_definition(causal: bool, masked: bool) -> None:
    layer, batch = build(causal, {"block": 3, "beyond": 2}), make_batch(length=20)
    assert not layer.inner.is_short(20)
    x = joints_of(batch)
    torch.testing.assert_close(layer(x, context_of(batch, masked)), oracle(layer, x, batch, masked), rtol=0, atol=1e-12)


@every_form
def test_visible_keys_equal_a_double_loop(causal: bool, options: dict[str, Any]) -> None:
    layer, length = build(causal, options), 11
    places = [(t, j) for t in range(length) for j in range(JOINTS)]
    want = torch.tensor([[sees(layer, query, key) for key in places] for query in places])
    assert touched(layer, length).flatten(2).flatten(0, 1).equal(want)


def test_blocks_of_everything_are_attention_among_all_joints_of_all_frames() -> None:
    for causal in (False, True):
        layer, batch = build(causal, {"block": 12}, EVERYBODY), make_batch(length=12)
        x = joints_of(batch)
        softmax = build_attention("softmax", DIM, HEADS).double()
        softmax.load_state_dict(layer.inner.state_dict())
        together = x.unflatten(0, (-1, JOINTS)).transpose(1, 2).flatten(1, 2)  # frame by frame, joint by joint
        at_once = Context.from_times(batch.times.repeat_interleave(JOINTS, dim=1), K, dtype=torch.float64)
        if causal:  # joints of a frame are there at once
            frame = torch.arange(12).repeat_interleave(JOINTS)
            q, k, v = softmax.project(together, at_once)  # type: ignore[operator]
            answered = softmax.summed(q, k, v, frame[:, None] >= frame)  # type: ignore[operator]
            want = softmax.out_proj(softmax.merge(answered))  # type: ignore[operator]
        else:
            want = softmax(together, at_once)
        want = want.unflatten(1, (12, JOINTS)).transpose(1, 2).flatten(0, 1)
        torch.testing.assert_close(layer(x, context_of(batch)), want, rtol=0, atol=1e-12)


def test_joints_that_see_only_themselves_attend_in_blocks_of_time() -> None:
    layer, batch = build(True, {"block": 3}, [[joint] for joint in range(JOINTS)]), make_batch(length=30)
    x, context = joints_of(batch), context_of(batch, masked=True)
    torch.testing.assert_close(layer(x, context), layer.inner(x, context), rtol=0, atol=1e-12)


@gaps
@pytest.mark.parametrize("options", [options for causal, options in FORMS if causal], ids=str)
def test_stepping_equals_the_causal_forward(options: dict[str, Any], masked: bool) -> None:
    layer, batch = build(True, options), make_batch(length=23)
    x, cache = joints_of(batch), layer.init_cache(2 * JOINTS, device="cpu", dtype=torch.float64)
    sizes, answers = [part.shape for part in cache], []
    for t in range(23):
        answer, cache = layer.step(x[:, t : t + 1], context_of(batch.frames(slice(t, t + 1)), masked), cache)
        answers.append(answer)
    torch.testing.assert_close(torch.cat(answers, dim=1), layer(x, context_of(batch, masked)), rtol=0, atol=1e-12)
    assert [part.shape for part in cache] == sizes


@every_form
@pytest.mark.parametrize("garbage", [1e6, math.nan])
def test_content_of_missing_frames_has_no_effect(causal: bool, options: dict[str, Any], garbage: float) -> None:
    layer, batch = build(causal, options), make_batch(length=20)
    x, context = joints_of(batch), context_of(batch, masked=True)
    spoilt = x.where(batch.valid.repeat_interleave(JOINTS, dim=0)[..., None], garbage)
    torch.testing.assert_close(layer(spoilt, context), layer(x, context), rtol=0, atol=0)


@gaps
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_those_of_finite_differences(causal: bool, masked: bool) -> None:
    layer, batch = build(causal, {"block": 1, "beyond": 1}), make_batch(rows=1, length=7)
    x = joints_of(batch)[..., :].requires_grad_()
    weights = dict(layer.named_parameters())

    def answer(x: Tensor, *parameters: Tensor) -> Tensor:
        named = dict(zip(weights, parameters, strict=True))
        out: Tensor = torch.func.functional_call(layer, named, (x, context_of(batch, masked)))
        return out

    assert torch.autograd.gradcheck(answer, (x, *weights.values()), fast_mode=True)


def test_neighbourhoods_contain_the_joint_and_return_no_map() -> None:
    layer = build(False, {"block": 3})
    with pytest.raises(ValueError, match="each with the joint itself"):
        NeighbourhoodAttention(layer.inner, [[1], [0, 1], [2], [3], [4]])
    assert not layer.has_map
    with pytest.raises(ValueError, match="no map of frames"):
        layer.weights(joints_of(make_batch()), context_of(make_batch()))
