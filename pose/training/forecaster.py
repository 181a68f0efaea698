"""Training of forecasters: loss and metrics."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pose.errors import PoseError
from pose.lifting.forecast.batch import ForecastBatch
from pose.lifting.forecast.blended import Blended
from pose.lifting.forecast.build import build_network, load_network, save_forecaster
from pose.lifting.forecast.network import Displacements, ForecasterNetwork, step_times
from pose.training.batches import BatchSource, generator
from pose.training.config import ForecasterTrainConfig, ForecastLossWeights
from pose.training.loop import Loss, TrainingLoop

Evaluate = Callable[[ForecasterNetwork, int], dict[str, float]]
_HORIZON_OFFSET_S = 0.15  # predictions h s ahead have the weight 1 / (h + 0.15): errors grow about linearly


class ForecastTensors(NamedTuple):
    """A `pose.lifting.forecast.batch.ForecastBatch` as tensors."""

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
    """Compute the metrics of a forecaster, with one value per horizon H of the batches.

    Returns:
        `mpjpe`: MPJPE (H,) of the 17 joints relative to the pelvis, mm. `root`: mean error (H,) of the pelvis, mm.
            `inside`: fraction (H,) of the joint errors inside one sigma.
    """
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
