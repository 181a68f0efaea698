"""Bugs of well-known public implementations, each by name, that ours must not have."""

from fractions import Fraction

import pytest
import torch
from attention_forms import CAUSAL, DIM, HEADS, STREAMING, TIMED, Batch, Form, for_each, make_batch
from torch import Tensor

from pose.lifting.attention import Context, build_attention, rotary_phases
from pose.lifting.attention.scan import CHUNK
from pose.training.attention import PerformerAttention
from pose.training.attention.performer import orthogonal_features

PI = Fraction(314159265358979323846264338327950288419716939937510, 10**50)


def at_one_time(batch: Batch, *, masked: bool) -> Context:
    """The batch's context with all frames at once, so that rotation does nothing."""
    return Context.from_times(torch.zeros_like(batch.times), DIM // HEADS, batch.valid if masked else None)


@pytest.mark.parametrize("seconds", [0.04, 3600.04, 2_592_000.04])
def test_rotary_phases_lose_precision_when_positions_are_single_precision(seconds: float) -> None:
    cos, sin = rotary_phases(torch.tensor([[seconds]], dtype=torch.float64), 2 * 2)
    for index, hertz in ((0, Fraction(1, 10)), (1, Fraction(10))):
        turns = Fraction(seconds) * hertz % 1
        angle = torch.tensor(float(2 * PI * turns), dtype=torch.float64)
        assert cos[0, 0, index].item() == pytest.approx(angle.cos().item(), abs=2e-7)
        assert sin[0, 0, index].item() == pytest.approx(angle.sin().item(), abs=2e-7)


@for_each(form for form in CAUSAL if form.name == "performer")
def test_the_maximum_over_keys_must_not_leak_the_future(form: Form) -> None:
    layer, batch = form.build(), make_batch(length=2 * CHUNK + 5)
    later = batch.x.clone()
    later[:, CHUNK + 3 :] *= 100
    want, got = (layer(x, batch.context(masked=False)) for x in (batch.x, later))
    assert got[:, : CHUNK + 3].equal(want[:, : CHUNK + 3])
    assert got.isfinite().all()


def test_weights_of_performer_are_positive_and_sum_to_one() -> None:
    batch = make_batch(length=30, dtype=torch.float32)
    layer = build_attention("performer", DIM, HEADS)
    with torch.no_grad():
        for linear in (layer.q_proj, layer.k_proj):
            linear.weight *= 4  # with rotated features in the numerator only, such weights are far above 1
        values = layer.v_proj(batch.x)
        layer.out_proj.weight.copy_(torch.eye(DIM))
        layer.out_proj.bias.zero_()
        y = layer(batch.x, batch.context(masked=False))
    assert (y <= values.amax(dim=1, keepdim=True) + 1e-5).all()
    assert (y >= values.amin(dim=1, keepdim=True) - 1e-5).all()


@pytest.mark.parametrize("name", ["performer", "fastformer"])
def test_large_inputs_in_half_precision_give_finite_outputs(name: str) -> None:
    batch = make_batch(length=30, dtype=torch.float32)
    layer = build_attention(name, DIM, HEADS).half()
    assert layer(300 * batch.x.half(), batch.context(masked=False)).isfinite().all()


@pytest.mark.parametrize("name", ["performer", "fastformer-cumulative"])
def test_keys_of_very_different_size_must_not_overflow_or_vanish(name: str) -> None:
    layer, batch = build_attention(name, DIM, HEADS, causal=True), make_batch(length=80, dtype=torch.float32)
    x = batch.x.clone()
    x[:, :20] *= 50
    x[:, 60:] *= 50
    x.requires_grad_()
    y = layer(x, batch.context())
    y.square().sum().backward()
    assert y.isfinite().all()
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_random_features_must_not_change_in_forward_passes() -> None:
    layer, batch = build_attention("performer", DIM, HEADS), make_batch(dtype=torch.float32)
    before = layer.random_features.clone()
    for _ in range(3):
        layer.train()(batch.x, batch.context())
        layer.eval()(batch.x, batch.context())
    assert layer.random_features.equal(before)


def test_redrawing_must_depend_on_its_generator_alone_and_not_happen_in_eval() -> None:
    layers = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        layer = build_attention("performer", DIM, HEADS).train()
        assert isinstance(layer, PerformerAttention)
        layer.redraw(torch.Generator().manual_seed(7))
        layers.append(layer)
    assert layers[0].random_features.equal(layers[1].random_features)
    layers[0].redraw(torch.Generator().manual_seed(8))
    assert not layers[0].random_features.equal(layers[1].random_features)
    with pytest.raises(ValueError, match="in training only"):
        layers[0].eval().redraw(torch.Generator())


def test_random_features_are_orthogonal_and_as_long_as_gaussian_vectors() -> None:
    w = orthogonal_features(300, 8, torch.Generator().manual_seed(0)).unflatten(0, (300, 8))
    gram = w @ w.mT
    off_diagonal = gram - torch.diag_embed(gram.diagonal(dim1=1, dim2=2))
    assert off_diagonal.abs().max() < 1e-12
    squares = w.square().sum(-1).flatten()  # chi-squared of 8 degrees: mean 8, variance 16
    assert squares.mean().item() == pytest.approx(8, rel=0.05)
    assert squares.var().item() == pytest.approx(16, rel=0.15)
    assert w.mean(dim=0).abs().max() < 0.3  # without the correction of its signs QR prefers one: 0.84


@pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
def test_random_features_must_estimate_softmax(causal: bool) -> None:
    batch = make_batch(length=30)
    context = at_one_time(batch, masked=True)

    def error(blocks: int) -> float:
        torch.manual_seed(0)
        estimate = build_attention("performer", DIM, HEADS, causal=causal, blocks=blocks).double()
        exact = build_attention("softmax", DIM, HEADS, causal=causal).double()
        weights = {key: value for key, value in estimate.state_dict().items() if "proj" in key}
        exact.load_state_dict(weights)
        want = exact(batch.x, context)
        return ((estimate(batch.x, context) - want).norm() / want.norm()).item()

    few, many = error(4), error(1000)
    assert few < 0.3
    assert many < min(0.04, few / 5)


def test_sharing_projections_must_not_make_keys_the_values() -> None:
    layer, batch = build_attention("linformer", DIM, HEADS, sharing="kv").double(), make_batch()
    before = layer(batch.x, batch.context())
    torch.nn.init.normal_(layer.get_submodule("k_proj").weight)
    assert not torch.allclose(layer(batch.x, batch.context()), before)


@pytest.mark.parametrize("length", [2, 27, 243])
def test_fnet_output_must_not_grow_with_the_length(length: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(8, length, 64)
    y = build_attention("fnet", 64, 2)(x, Context.from_times(torch.zeros(8, length), 32))
    assert (y.std() / x.std()).item() == pytest.approx(0.5**0.5, rel=0.06)


@for_each(STREAMING)
def test_restarted_stream_row_must_not_see_its_earlier_frames(form: Form) -> None:
    """One row of a running batch starts again, as when one person leaves and another comes."""
    layer, batch = form.build(), make_batch(length=14)

    def step(t: int, cache: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        frame = batch.frames(slice(t, t + 1))
        return layer.step(frame.x, frame.context(), cache)

    running = fresh = layer.init_cache(2, device="cpu", dtype=torch.float64)
    for t in range(7):
        _, running = step(t, running)
    restart = torch.tensor([True, False])
    running = type(running)(
        *(new.where(restart.view(-1, *[1] * (new.ndim - 1)), old) for new, old in zip(fresh, running, strict=True))
    )
    for t in range(7, 14):
        y, running = step(t, running)
        want, fresh = step(t, fresh)
        torch.testing.assert_close(y[0], want[0], rtol=0, atol=1e-12)
    bounded = form.options.keys() & {"window", "memory", "span", "block"}
    assert bounded or not torch.allclose(y[1], want[1])  # the other row went on


@for_each(form for form in TIMED if form in STREAMING)
def test_stream_after_a_month_must_equal_its_start(form: Form) -> None:
    layer, batch = form.build(torch.float32), make_batch(length=8, dtype=torch.float32)

    def run(start: float) -> Tensor:
        cache, answers = layer.init_cache(2, device="cpu", dtype=torch.float32), []
        for t in range(8):
            frame = Batch(batch.x, batch.times + start, batch.valid).frames(slice(t, t + 1))
            y, cache = layer.step(frame.x, frame.context(), cache)
            answers.append(y)
        return torch.cat(answers, dim=1)

    torch.testing.assert_close(run(2_592_000.0), run(0.0), rtol=0, atol=1e-5)
