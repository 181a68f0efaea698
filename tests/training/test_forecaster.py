"""Training a forecaster: what is minimised, when the truth is told, and a sigma that holds 68 % at every horizon."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from pose.errors import PoseError
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
from pose.lifting.forecast.network import Displacements
from pose.lifting.forecast.types import ForecastBatch
from pose.training.config import ForecasterTrainConfig, ForecastLossWeights, OptimizerConfig, ScheduleConfig
from pose.training.forecaster import (
    ForecasterTrainer,
    calibrate_forecaster,
    forecast_loss,
    measure_forecaster,
)

SMALL = ForecasterConfig(dim=16, depth=1, decoder_depth=1, heads=2)


class Swings:
    """Everything swings at 0.7 Hz, in a phase and an amplitude of each person's own."""

    def batch(self, step, people=16):
        rng = np.random.default_rng(step)
        phase, size = rng.uniform(0, 6, (people, 1, 1)), rng.uniform(0.1, 0.3, (people, 1, COORDINATES))
        ages, ahead = STEP * np.arange(1 - PAST_STEPS, 1), rng.uniform(0.05, 1, (people, 4))

        def way(times):
            return (size * (np.sin(4.4 * times[..., None] + phase) - np.sin(phase))).astype(np.float32)

        past = np.zeros((people, PAST_STEPS, FEATURES), np.float32)
        past[..., :COORDINATES] = way(np.tile(ages, (people, 1)))
        past[..., COORDINATES : 2 * COORDINATES] = np.gradient(past[..., :COORDINATES], STEP, axis=1) * 0.2
        steps = np.tile(STEP * np.arange(1, FUTURE_STEPS + 1), (people, 1))
        return ForecastBatch(past, ahead, way(ahead), way(steps))

    def measured(self, noise=0.0):
        batch = self.batch(10**6, people=200)
        ahead = np.tile(HORIZONS, (200, 1))
        truth = batch.steps[:, [1, 3, 7, 9, 13, 24]]
        rng = np.random.default_rng(1)
        return ForecastBatch(
            batch.past, ahead, truth + noise * rng.normal(size=truth.shape).astype(np.float32), batch.steps
        )


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[] if kind == "mlp" else pytest.mark.slow) for kind in KINDS if kind != "blended"],
)
def test_every_forecaster_kind_learns(kind, tmp_path):
    """Better than to stand still, after a hundred steps."""
    config = ForecasterTrainConfig(
        model=ForecasterConfig(kind=kind, dim=32, depth=2, decoder_depth=1, heads=2),
        optimizer=OptimizerConfig(name="muon", lr=5e-3),
        schedule=ScheduleConfig(),
        steps=100,
        ema=0.9,
        precision="fp32",
        forcing=20,
    )
    trainer = ForecasterTrainer(config, Swings(), tmp_path)
    trainer.run()
    measured = Swings().measured()
    still = (
        1000 * np.linalg.norm(measured.truth.reshape(200, 6, 17, 3)[:, :, :16], axis=-1).sum(axis=-1).mean(axis=0) / 17
    )
    found = measure_forecaster(trainer.averaged_network.eval(), [measured])["mpjpe"]
    assert (found[1:] < 0.7 * still[1:]).all(), found / still


def test_loss_is_the_weighted_distance():
    said = Displacements(torch.zeros(1, 2, COORDINATES), torch.zeros(1, 2, 17))
    truth = torch.zeros(1, 2, 17, 3)
    truth[0, 0, :16, 0] = 0.1
    only = ForecastLossWeights(root=0.0, spread=0.0)
    ahead = torch.tensor([[0.05, 0.85]])
    near = forecast_loss(said, truth.flatten(-2), ahead, only)[0]
    far = forecast_loss(said, truth.flip(1).flatten(-2), ahead, only)[0]
    assert near / far == pytest.approx(1.0 / 0.2)
    assert near + far == pytest.approx(0.1)
    truth[:] = 0
    truth[..., 16, 1] = 0.2
    assert forecast_loss(said, truth.flatten(-2), ahead, ForecastLossWeights(root=0.5, spread=0))[0] == pytest.approx(
        0.1
    )


def test_likelihood_is_best_at_the_mean_error_and_trains_sigma_alone():
    only = ForecastLossWeights(root=0.0, spread=1.0)
    truth = torch.full((1, 1, COORDINATES), 0.1 / 3**0.5)  # every point is 0.1 m off

    def spread(log_sigma):
        places = torch.zeros(1, 1, COORDINATES, requires_grad=True)
        said = Displacements(places, torch.full((1, 1, 17), log_sigma, requires_grad=True))
        return forecast_loss(said, truth, torch.ones(1, 1), only)[1]["spread"], places, said.log_sigma

    tried = np.linspace(-5, 0, 200).tolist()
    best = tried[int(np.argmin([float(spread(one)[0].detach()) for one in tried]))]
    assert best == pytest.approx(np.log(0.1), abs=0.03)
    loss, places, log_sigma = spread(0.0)
    loss.backward()
    assert places.grad is None
    assert (log_sigma.grad > 0).all()


def test_calibrated_sigma_covers_68_percent_per_horizon():
    torch.manual_seed(0)
    network = build_network(SMALL).eval()
    network.head.linear.bias.data[COORDINATES:] = 4.0  # far too modest
    easy, hard = Swings().measured(0.01), Swings().measured(0.2)
    assert (measure_forecaster(network, [easy, hard])["inside"] > 0.9).all()
    calibrate_forecaster(network, [[easy], [hard]])
    assert np.allclose(measure_forecaster(network, [easy, hard])["inside"], 0.6827, atol=0.01)


def as_lifted(batch, sigma=40.0):
    past = batch.past.copy()
    past[..., 2 * COORDINATES : 2 * COORDINATES + SIGMA_FEATURES] = SIGMA_SCALE * np.log(sigma)
    return replace(batch, past=past)


def test_sigma_is_calibrated_for_exact_pasts_and_for_a_lifters_each():
    torch.manual_seed(0)
    network = build_network(SMALL).eval()
    exact, lifted = Swings().measured(0.01), as_lifted(Swings().measured(0.2))
    calibrate_forecaster(network, [[exact], [lifted]])
    for one in (exact, lifted):
        assert np.allclose(measure_forecaster(network, [one])["inside"], 0.6827, atol=0.01)
    only = build_network(SMALL).eval()
    calibrate_forecaster(only, [[lifted]])
    assert torch.equal(*only.calibration)  # where nothing is known of exact pasts, they are taken as the others


def trained_parts(tmp_path):
    """The weights of a one-shot decoder and an MLP, as two runs leave them."""
    torch.manual_seed(4)
    kinds = {"one-shot": SMALL, "mlp": ForecasterConfig(kind="mlp", dim=16, depth=2)}
    for kind, config in kinds.items():
        network = build_network(config)
        for parameter in network.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
        network.calibration += 1
        save_forecaster(network, tmp_path / f"{kind}.safetensors")
    return tuple(str(tmp_path / f"{kind}.safetensors") for kind in kinds)


BLENDED = replace(SMALL, kind="blended", mlp_dim=16, mlp_depth=2)


def test_blended_forecaster_learns_its_weights(tmp_path):
    parts = trained_parts(tmp_path)
    config = ForecasterTrainConfig(
        model=BLENDED, start_from=parts, frozen=True, steps=30, ema=0.5, precision="fp32",
        optimizer=OptimizerConfig(lr=0.1, weight_decay=0.0),
    )  # fmt: skip
    trainer = ForecasterTrainer(config, Swings(), tmp_path / "run")
    past, ahead = torch.from_numpy(Swings().batch(0).past), torch.full((16, 1), 0.3)
    one, other = (load_network(Path(part)).at(past, ahead).displacement for part in parts)
    assert torch.allclose(trainer.bare_network.at(past, ahead).displacement, (one + other) / 2, atol=1e-5)
    before = measure_forecaster(trainer.bare_network.eval(), [Swings().measured()])["mpjpe"]
    trainer.run()
    blended = trainer.averaged_network.eval()
    assert measure_forecaster(blended, [Swings().measured()])["mpjpe"].mean() < before.mean()
    for part, weights in zip((blended.decoding, blended.trend), map(load_network, map(Path, parts)), strict=True):
        assert all(torch.equal(p, dict(weights.named_parameters())[name]) for name, p in part.named_parameters())


def test_incompatible_parts_are_rejected(tmp_path):
    config = ForecasterTrainConfig(model=BLENDED, start_from=trained_parts(tmp_path)[::-1], precision="fp32")
    with pytest.raises(PoseError, match="expected one-shot and mlp"):
        ForecasterTrainer(config, Swings(), tmp_path / "run").build()


def test_invalid_configurations_are_rejected():
    with pytest.raises(ValueError, match="forcing"):
        ForecasterTrainConfig(forcing=0.5)
    with pytest.raises(ValueError, match="frozen"):
        ForecasterTrainConfig(frozen=True)
    with pytest.raises(ValueError, match="warm-up"):
        ForecasterTrainConfig(
            model=ForecasterConfig(norm="none", init="t-fixup"), schedule=ScheduleConfig(warmup="linear")
        )
