"""The networks: attention against slow oracles, causality, the cache, what an answer may depend on, calibration."""

import math

import pytest
import torch
from stirred import stirred

from pose.errors import PoseError
from pose.lifting.attention import Context, rotary_phases
from pose.lifting.attention.base import rotate
from pose.lifting.attention.softmax import CrossAttention
from pose.lifting.forecast.build import build_network, load_network, save_forecaster
from pose.lifting.forecast.config import (
    COORDINATES,
    FEATURES,
    FUTURE_STEPS,
    HORIZONS,
    KINDS,
    PAST_STEPS,
    SIGMA_FEATURES,
    SIGMA_SCALE,
    STEP,
    ForecasterConfig,
)
from pose.lifting.forecast.network import (
    Displacements,
    interpolate_steps,
    lifted_weight,
    log_speed,
)
from pose.lifting.initialization import initialize_decoder

SIGMAS = slice(2 * COORDINATES, 2 * COORDINATES + SIGMA_FEATURES)
SMALL = {"dim": 16, "depth": 2, "decoder_depth": 2, "heads": 2}


def network(kind, **more):
    return stirred(ForecasterConfig(kind=kind, **(SMALL | more)), by=0.05)


def pasts(people=3):
    return torch.randn(people, PAST_STEPS, FEATURES, generator=torch.Generator().manual_seed(2))


def context(times, dim):
    return Context(*rotary_phases(times, dim, torch.float64))


def test_cross_attention_equals_two_loops():
    torch.manual_seed(0)
    layer = CrossAttention(8, 2).double()
    x, memory = torch.randn(2, 3, 8).double(), torch.randn(2, 5, 8).double()
    times, ages = torch.rand(2, 3).double(), -torch.rand(2, 5).double()
    valid = torch.tensor([[True, True, False, True, True], [False] * 5])
    now, known = context(times, 4), context(ages, 4)
    layer.requires_grad_(False)
    q, k = rotate(layer._split(layer.q_proj(x)), now), rotate(layer._split(layer.k_proj(memory)), known)
    v = layer._split(layer.v_proj(memory))
    heads = torch.zeros(3, 8).double()
    for head in range(2):
        for t in range(3):
            scores = [math.exp(float(q[0, head, t] @ k[0, head, s]) / 2) * bool(valid[0, s]) for s in range(5)]
            for s, score in enumerate(scores):
                heads[t, 4 * head : 4 * head + 4] += score / sum(scores) * v[0, head, s]
    memory[~valid] = torch.nan
    found = layer(x, now, layer.remember(memory, known), valid)
    assert (found[0] - layer.out_proj(heads)).abs().max() < 1e-10
    assert (found[1] == 0).all()  # no person observed


def test_cross_attention_gradient_equals_finite_differences():
    torch.manual_seed(0)
    layer = CrossAttention(4, 1).double()
    times = torch.rand(1, 2).double()
    x, memory = (torch.randn(1, 2, 4).double().requires_grad_() for _ in range(2))

    def answer(x, memory):
        return layer(x, context(times, 4), layer.remember(memory, context(-times, 4)))

    assert torch.autograd.gradcheck(answer, (x, memory))


@pytest.mark.parametrize("norm", ["none", "pre", "post"])
def test_decoder_does_not_see_later_steps(norm):
    net, past, truth = network("autoregressive", norm=norm), pasts(), torch.randn(3, FUTURE_STEPS, COORDINATES)
    drawn = torch.Generator()
    before = net.scheduled_sampling(past, truth, 1.0, drawn).displacement
    truth[:, 10:] += 1
    after = net.scheduled_sampling(past, truth, 1.0, drawn).displacement
    assert torch.allclose(after[:, :11], before[:, :11], atol=1e-6)  # step 10 is from the steps before it
    assert not torch.allclose(after[:, 11], before[:, 11], atol=1e-3)


@pytest.mark.parametrize("norm", ["none", "pre", "post"])
def test_cached_rollout_equals_recomputation(norm):
    """Told what it said itself, the decoder says it again."""
    net, past = network("autoregressive", norm=norm), pasts()
    with torch.no_grad():
        rolled = net.predict(past)
        told = net.scheduled_sampling(past, rolled.displacement, 1.0, torch.Generator())
    assert rolled.displacement.abs().max() > 1e-2
    assert torch.allclose(rolled.displacement, told.displacement, atol=1e-5)
    assert torch.allclose(rolled.log_sigma, told.log_sigma, atol=1e-4)


@pytest.mark.parametrize("kind", ["autoregressive", "gru", "gru-attention"])
def test_scheduled_sampling_interpolates_truth_and_rollout(kind):
    net, past, truth = network(kind), pasts(), 5 + torch.randn(3, FUTURE_STEPS, COORDINATES)
    with torch.no_grad():
        rolled = net.predict(past).displacement
        none, some, full = (
            net.scheduled_sampling(past, truth, keep, torch.Generator().manual_seed(0)) for keep in (0.0, 0.5, 1.0)
        )
    if kind != "autoregressive":  # whose second pass is told what the first said of the truth
        assert torch.allclose(none.displacement, rolled, atol=1e-5)
    assert not torch.allclose(some.displacement, none.displacement, atol=1e-2)
    assert not torch.allclose(some.displacement, full.displacement, atol=1e-2)
    assert torch.allclose(full.displacement[:, 0], rolled[:, 0], atol=1e-6)  # the first step knows the past alone


def test_forecast_of_a_horizon_is_independent_of_others():
    net, past = network("one-shot"), pasts()
    ahead = torch.tensor([[0.05, 0.3, 0.9]]).expand(3, 3)
    with torch.no_grad():
        together, alone = net(past, ahead), net(past, ahead[:, 1:2])
    for one, other in zip(together, alone, strict=True):
        assert torch.allclose(one[:, 1:2], other, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_batch_people_are_independent(kind):
    net, past, ahead = network(kind), pasts(), torch.rand(3, 4)
    with torch.no_grad():
        together, alone = net(past, ahead), net(past[1:2], ahead[1:2])
    for one, other in zip(together, alone, strict=True):
        assert torch.allclose(one[1:2], other, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_training_begins_at_zero_velocity(kind):
    torch.manual_seed(0)
    net = build_network(ForecasterConfig(kind=kind, **SMALL)).eval()
    with torch.no_grad():
        places, sigma = net(pasts(), torch.full((3, 1), 0.5))
    assert places.abs().max() < 0.1
    assert ((sigma > 0.02) & (sigma < 0.5)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_gets_a_gradient(kind):
    """No parameter is cut off from the loss."""
    net = network(kind)
    if net.predicts_steps:
        said = net.scheduled_sampling(pasts(), torch.randn(3, FUTURE_STEPS, COORDINATES), 0.5, torch.Generator())
    else:
        said = net.at(pasts(), torch.rand(3, 5))
    (said.displacement.square().sum() + said.log_sigma.square().sum()).backward()
    idle = [name for name, p in net.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert [name for name in idle if not name.endswith("k_proj.bias")] == []  # softmax forgets what all keys share


def test_horizons_between_steps_are_interpolated():
    places = (torch.arange(1, FUTURE_STEPS + 1) * 2.0)[None, :, None].expand(1, -1, COORDINATES)
    steps = Displacements(places, torch.arange(FUTURE_STEPS)[None, :, None].expand(1, -1, 17).float())
    found = interpolate_steps(steps, torch.tensor([[0.0, STEP / 2, STEP, 1.75 * STEP, 1.0]]))
    assert torch.allclose(found.displacement[0, :, 0], torch.tensor([0, 1, 2, 3.5, 50]), atol=1e-4)
    assert torch.allclose(found.log_sigma[0, :, 0], torch.tensor([0, 0, 0, 0.75, 24]), atol=1e-4)


def test_calibration_scales_sigma_at_its_horizon_alone():
    net, past, ahead = network("one-shot"), pasts(2), torch.tensor([HORIZONS] * 2)
    past[0, :, SIGMAS], past[1, :, SIGMAS] = 0, SIGMA_SCALE * math.log(50)
    with torch.no_grad():
        before = net(past, ahead)[1]
        net.calibration[1, 2, 2 + 16] = math.log(2)  # of the pelvis' way, which a network says last and an answer first
        after = net(past, ahead)[1]
    expected = before.clone()
    expected[1, 2, 0] *= 2  # of the lifter's past alone
    assert torch.allclose(after, expected, rtol=1e-5)


def test_past_speed_is_measured():
    past = torch.zeros(4, PAST_STEPS, FEATURES)
    for row, sigma in enumerate((1.0, 10**0.5, 10.0, 80.0)):
        past[row, :, SIGMAS] = SIGMA_SCALE * math.log(sigma)
    assert torch.allclose(lifted_weight(past), torch.tensor([0.0, 0.5, 1.0, 1.0]), atol=1e-5)
    past[1:, 1:, COORDINATES : 2 * COORDINATES - 3] = 0.5  # the pelvis' own, the last, stays out of it
    past[..., 2 * COORDINATES - 3 : 2 * COORDINATES] = 9
    found = log_speed(past)
    assert torch.allclose(found[1:] - found[0], torch.tensor(math.log(0.53 / 0.03)), atol=1e-4)


def test_t_fixup_scales_a_decoder_by_its_own_factor():
    built = build_network(ForecasterConfig(kind="autoregressive", norm="none", init="t-fixup", **SMALL))
    torch.manual_seed(3)
    initialize_decoder(built.decoder, "xavier")
    plain = {name: p.clone() for name, p in built.decoder.named_parameters()}
    torch.manual_seed(3)
    initialize_decoder(built.decoder, "t-fixup")
    factor = (9 * 2) ** -0.25
    scaled = ("v_proj.weight", "out_proj.weight", "fc1.weight", "fc2.weight")
    for name, parameter in built.decoder.blocks.named_parameters():
        expected = plain[f"blocks.{name}"] * (factor if name.endswith(scaled) else 1)
        assert torch.allclose(parameter, expected), name
    assert (
        abs(float(built.decoder.embed.weight.detach().std()) / (factor * built.decoder.embed.in_features**-0.5) - 1)
        < 0.1
    )


def test_incompatible_parts_are_rejected():
    with pytest.raises(ValueError, match="kind"):
        ForecasterConfig(kind="oracle")
    with pytest.raises(ValueError, match="even multiple of heads"):
        ForecasterConfig(dim=30, heads=4)
    with pytest.raises(ValueError, match="decoder"):
        build_network(ForecasterConfig(norm="none", init="dt-fixup"))


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoint_round_trips_the_network(kind, tmp_path):
    net = network(kind)
    save_forecaster(net, tmp_path / "one.safetensors")
    again = load_network(tmp_path / "one.safetensors")
    past, ahead = pasts(), torch.rand(3, 2)
    with torch.no_grad():
        assert torch.equal(net(past, ahead)[0], again(past, ahead)[0])
    (tmp_path / "two.safetensors").write_bytes(b"not one")
    with pytest.raises(PoseError, match="not a readable forecaster"):
        load_network(tmp_path / "two.safetensors")
