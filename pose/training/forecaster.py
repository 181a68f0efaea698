"""Training of forecasters: loss, metrics and the calibration of sigma.

How much a network under- or overestimates its errors depends on the input (lifted or exact), the horizon and the speed
of the person. For each kind of input, log sigma is therefore replaced by slope log sigma + weight log speed + offset,
with a weight per horizon and an offset per horizon and point. The offsets place 68 % of a point's errors inside one
sigma. Slopes and weights minimise the quantile loss of the log errors (quantile regression, Koenker and Bassett, 1978).
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pose.errors import PoseError
from pose.lifting.forecast.blended import Blended
from pose.lifting.forecast.build import build_network, load_network, save_forecaster
from pose.lifting.forecast.config import HORIZONS
from pose.lifting.forecast.network import Displacements, ForecasterNetwork, lifted_weight, log_speed, step_times
from pose.lifting.forecast.types import ForecastBatch
from pose.training.batches import BatchSource, generator
from pose.training.config import ForecasterTrainConfig, ForecastLossWeights
from pose.training.loop import Loss, TrainingLoop
from pose.training.measure import SIGMA_COVERAGE

Evaluate = Callable[[ForecasterNetwork, int], dict[str, float]]
_HORIZON_OFFSET_S = 0.15  # predictions h s ahead have the weight 1 / (h + 0.15): errors grow about linearly


class ForecastTensors(NamedTuple):
    """A `pose.lifting.forecast.types.ForecastBatch` as tensors."""

    past: Tensor
    ahead: Tensor
    truth: Tensor
    steps: Tensor

    @classmethod
    def of(cls, batch: ForecastBatch) -> Self:
        """Convert the arrays of a batch to float32 tensors."""
        return cls(*(torch.from_numpy(getattr(batch, name)).float() for name in cls._fields))

    def to(self, device: torch.device) -> Self:
        """Return a copy of the batch on a device."""
        return type(self)(*(tensor.to(device, non_blocking=True) for tensor in self))


class ForecasterTrainer(TrainingLoop[ForecasterNetwork, ForecastBatch, ForecastTensors]):
    """Training loop of a forecaster."""

    to_tensors = ForecastTensors.of

    def __init__(
        self,
        config: ForecasterTrainConfig,
        source: BatchSource[ForecastBatch],
        folder: Path,
        evaluate: Evaluate | None = None,
    ) -> None:
        self.config = config
        super().__init__(config, source, folder, evaluate)

    def build(self) -> ForecasterNetwork:
        network = build_network(self.config.model)
        if self.config.start_from:
            start_from(network, [load_network(Path(name)) for name in self.config.start_from])
        if self.config.frozen and isinstance(network, Blended):
            network.decoding.requires_grad_(False)
            network.trend.requires_grad_(False)
        return network

    def write(self, network: ForecasterNetwork, path: Path) -> None:
        save_forecaster(network, path)

    def loss(self, batch: ForecastTensors, step: int) -> Loss:
        network = self.bare_network
        if not network.predicts_steps:
            return forecast_loss(network.at(batch.past, batch.ahead), batch.truth, batch.ahead, self.config.loss)
        truth_probability = true_input_probability(step, self.config.forcing)
        drawn = generator(torch.device("cpu"), self.config.seed, step, "forcing")
        predicted = network.scheduled_sampling(batch.past, batch.steps, truth_probability, drawn)
        return forecast_loss(predicted, batch.steps, step_times(batch.past.device), self.config.loss)


def start_from(network: ForecasterNetwork, trained: Sequence[ForecasterNetwork]) -> None:
    """Copy the weights of trained networks (blended: decoder first), but not their calibration, to a new one."""
    parts: list[ForecasterNetwork] = [network.decoding, network.trend] if isinstance(network, Blended) else [network]
    if [part.config for part in parts] != [one.config for one in trained]:
        kinds = " and ".join(part.config.kind for part in parts)
        raise PoseError(f"train.start_from: expected {kinds} of the configuration train.model, in this order")
    for part, one in zip(parts, trained, strict=True):
        part.load_state_dict(one.state_dict() | {"calibration": part.calibration})


def true_input_probability(step: int, forcing: float) -> float:
    """Return the probability k / (k + exp(step / k)), k = `forcing`, of a true step in scheduled sampling."""
    return float(forcing / (forcing + np.exp(min(step / forcing, 700.0))))


def forecast_loss(predicted: Displacements, truth: Tensor, ahead: Tensor, weights: ForecastLossWeights) -> Loss:
    """Compute the loss of a forecaster for true displacements (B, Q, 51) m, and its terms by name."""
    # The terms `position` and `root` are the mean errors of joints and pelvis, in which near times weigh more. The term
    # `spread` is the negative log likelihood of the errors' norms under Laplace distributions of scale sigma, whose
    # long tails tolerate unpredictable motion. It trains only sigma.
    error = (predicted.displacement - truth).unflatten(-1, (-1, 3)).norm(dim=-1)
    weight = (1 / (ahead + _HORIZON_OFFSET_S)).expand(error.shape[:2])
    weight = weight / weight.mean()
    likelihood = predicted.log_sigma + error.detach() / predicted.log_sigma.exp()
    joints, root = (weight[..., None] * error)[..., :-1].mean(), (weight * error[..., -1]).mean()
    parts = {"position": joints, "root": root, "spread": likelihood.mean()}
    return joints + weights.root * root + weights.spread * parts["spread"], parts


@torch.inference_mode()
def measure_forecaster(network: ForecasterNetwork, batches: Iterable[ForecastBatch]) -> dict[str, NDArray[np.float64]]:
    """Return by horizon (H,): `mpjpe` and the error of the `root`, mm, and the share of joints `inside` one sigma."""
    errors, inside = [], []
    for batch in batches:
        tensors = ForecastTensors.of(batch)
        displacement, sigma = network(tensors.past, tensors.ahead)
        error = (displacement - tensors.truth).unflatten(-1, (-1, 3)).norm(dim=-1)
        errors.append(error.numpy())
        inside.append((error[..., :-1] < sigma[..., 1:]).numpy())
    error, within = 1000 * np.concatenate(errors), np.concatenate(inside)
    return {
        "mpjpe": error[..., :-1].sum(axis=-1).mean(axis=0)
        / 17,  # 17, because the error of the pelvis, which is the origin, is 0
        "root": error[..., -1].mean(axis=0),
        "inside": within.mean(axis=(0, 2)),
    }


_SLOPES = np.arange(0.4, 2.01, 0.2).tolist()
_WEIGHTS = np.arange(0, 1.21, 0.2).tolist()
Numbers = NDArray[np.floating]


class Predictions(NamedTuple):
    """N predictions at H horizons each."""

    error: Numbers  # (N, H, 17) logarithm of the errors in m, of 16 joints and then of the pelvis
    sigma: Numbers  # (N, H, 17) logarithm of sigma in m, in the same order
    speed: Numbers  # (N,) logarithm of the speed before the prediction, from `log_speed`
    lifted: Numbers  # (N,) similarity of the past to lifted poses, from 0 (exact) to 1 (lifted), from `lifted_weight`

    def rows(self, chosen: NDArray[np.integer]) -> Self:
        """Return the predictions with the indices `chosen`."""
        return type(self)(*(values[chosen] for values in self))


@torch.inference_mode()
def calibrate_forecaster(network: ForecasterNetwork, conditions: Iterable[Iterable[ForecastBatch]]) -> None:
    """Set the network's `calibration` from batches of several conditions (original speed, other speeds, ...).

    If all pasts are exact, or all are lifted, both kinds get the same calibration.

    Args:
        conditions: Batches of each condition. Their times `ahead` must be `pose.lifting.forecast.config.HORIZONS`.
    """
    predictions = [_predictions(network, batches) for batches in conditions]
    kinds = [
        [one.rows(np.flatnonzero((one.lifted > 0.5) == lifted)) for one in predictions] for lifted in (False, True)
    ]
    kinds = [[one for one in kind if len(one.error)] for kind in kinds]
    fitted = [_fit(_balanced(kind)) if kind else None for kind in kinds]
    for row, own in enumerate(fitted):
        found = own if own is not None else fitted[1 - row]
        assert found is not None
        network.calibration[row] = torch.from_numpy(found)


def _predictions(network: ForecasterNetwork, batches: Iterable[ForecastBatch]) -> Predictions:
    parts = []
    for batch in batches:
        assert np.allclose(batch.ahead, HORIZONS)
        past, ahead, truth, _ = ForecastTensors.of(batch)
        found = network.at(past, ahead)
        error = (found.displacement - truth).unflatten(-1, (-1, 3)).norm(dim=-1).clamp(min=1e-9).log()
        values = error, found.log_sigma, log_speed(past), lifted_weight(past)
        parts.append(Predictions(*(value.numpy() for value in values)))
    return Predictions(*map(np.concatenate, zip(*parts, strict=True)))


def _balanced(conditions: list[Predictions]) -> Predictions:
    """Sample the same number of predictions of each condition at even intervals, for equal weights."""
    least = min(len(condition.error) for condition in conditions)
    chosen = [
        condition.rows(np.linspace(0, len(condition.error) - 1, least).round().astype(int)) for condition in conditions
    ]
    return Predictions(*map(np.concatenate, zip(*chosen, strict=True)))


def _fit(predictions: Predictions) -> Numbers:
    """Return slope, weight and 17 offsets (H, 2 + 17) at each horizon."""
    # The slope is common to all horizons; otherwise sigma might not increase from one horizon to the next.
    horizons = range(len(HORIZONS))
    tried = {
        (h, slope, weight): _offsets(
            predictions.error[:, h], slope * predictions.sigma[:, h] + weight * predictions.speed[:, None]
        )
        for h, slope, weight in product(horizons, _SLOPES, _WEIGHTS)
    }
    best = {(h, slope): min(_WEIGHTS, key=lambda w: tried[h, slope, w][0]) for h, slope in product(horizons, _SLOPES)}
    slope = min(_SLOPES, key=lambda s: sum(tried[h, s, best[h, s]][0] for h in horizons))
    return np.stack([[slope, best[h, slope], *tried[h, slope, best[h, slope]][1]] for h in horizons])


def _offsets(error: Numbers, sigma: Numbers) -> tuple[float, Numbers]:
    """Return the smallest quantile loss and the offsets (17,) that achieve it, for logarithms (N, 17)."""
    offsets = np.quantile(error - sigma, SIGMA_COVERAGE, axis=0)
    above = error - sigma - offsets
    return float(np.maximum(SIGMA_COVERAGE * above, (SIGMA_COVERAGE - 1) * above).mean()), offsets
