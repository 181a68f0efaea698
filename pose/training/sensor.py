"""Training of sensor networks: loss, metrics and the calibration of sigma."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from pose.lifting.sensor.features import JOINTS, SensorBatch, restore
from pose.lifting.sensor.network import SENSOR, TYPICAL_SIGMA_M, SensorNetwork
from pose.structures.types import F64, Array
from pose.training.batches import BatchSource
from pose.training.config import SensorLossWeights, SensorTrainConfig
from pose.training.evaluation import metrics
from pose.training.evaluation.metrics import LIMBS, flexion
from pose.training.loop import Loss, TrainingLoop
from pose.training.measure import SIGMA_COVERAGE
from pose.training.trainer import begin_step


class SensorTensors(NamedTuple):
    """The parts of a `SensorBatch` that the loss needs, as tensors."""

    features: Tensor
    times: Tensor
    corrections: Tensor
    valid: Tensor

    @classmethod
    def of(cls, batch: SensorBatch) -> Self:
        """Convert the arrays of a batch to tensors, which share their memory."""
        return cls(*(torch.from_numpy(getattr(batch, name)) for name in cls._fields))

    def to(self, device: torch.device) -> Self:
        """Return a copy of the batch on a device."""
        return type(self)(*(tensor.to(device, non_blocking=True) for tensor in self))


class SensorTrainer(TrainingLoop[SensorNetwork, SensorBatch, SensorTensors]):
    """Training loop of a sensor network; `definition` (17, 3) m is the mean offset of a Kinect's joints, if known."""

    to_tensors = SensorTensors.of

    def __init__(
        self,
        config: SensorTrainConfig,
        source: BatchSource[SensorBatch],
        definition: Array | None,
        folder: Path,
        evaluate: Callable[[SensorNetwork, int], dict[str, float]] | None = None,
    ) -> None:
        self.config, self._definition = config, definition
        super().__init__(config, source, folder, evaluate)

    def build(self) -> SensorNetwork:
        network = SensorNetwork(self.config.model)
        if self._definition is not None:
            network.definition.copy_(-torch.from_numpy(self._definition.ravel()))
        return network

    def write(self, network: SensorNetwork, path: Path) -> None:
        SENSOR.save(network, network.config, path)

    def loss(self, batch: SensorTensors, step: int) -> Loss:
        begin_step(self.bare_network, self.config.seed, step)
        corrections, log_sigma = self.bare_network.predict(batch.features, batch.times)
        return sensor_loss(corrections, log_sigma, batch, self.config.loss)


def sensor_loss(corrections: Tensor, log_sigma: Tensor, batch: SensorTensors, weights: SensorLossWeights) -> Loss:
    """Return the weighted loss of corrections (B, T, 51) m and log sigma (B, T, 17), and its terms by name."""
    # Velocity and acceleration are per frame at 30 frames/s. The term `spread` is the negative log likelihood of the
    # errors under a half-normal distribution of scale sigma; it trains only sigma.
    off = (corrections - batch.corrections).unflatten(-1, (JOINTS, 3))
    error = off.norm(dim=-1)
    step = (torch.diff(batch.times, dim=1).clamp(min=1e-3).float() * 30)[..., None, None]
    drift = torch.diff(off, dim=1) / step.clamp(min=0.25)
    frames = batch.valid.float()
    pairs = frames[:, 1:] * frames[:, :-1]
    likelihood = log_sigma + (error.detach() / (log_sigma.exp() * TYPICAL_SIGMA_M)).square() / 2
    parts = {
        "position": _mean(error[..., 1:].mean(-1), frames),
        "pelvis": _mean(error[..., 0], frames),
        "velocity": _mean(drift.norm(dim=-1).mean(-1), pairs),
        "acceleration": _mean(torch.diff(drift, dim=1).norm(dim=-1).mean(-1), pairs[:, 1:] * pairs[:, :-1]),
        "spread": _mean(likelihood.mean(-1), frames),
    }
    return torch.stack([getattr(weights, name) * value for name, value in parts.items()]).sum(), parts


def _mean(values: Tensor, weights: Tensor) -> Tensor:
    return (weights * values).sum() / weights.sum().clamp(min=1)


@torch.inference_mode()
def corrected(network: SensorNetwork, batch: SensorBatch) -> tuple[F64, F64]:
    """Return corrected joints (B, T, 17, 3) m and sigma (B, T, 17) m of a batch."""
    corrections, sigma = network(torch.from_numpy(batch.features), torch.from_numpy(batch.times))
    return restore(batch.view, corrections.numpy()), sigma.numpy().astype(np.float64)


class SensorErrors(NamedTuple):
    """Mean errors of skeletons; joints are about the pelvis."""

    position: float  # mm
    angle: float  # degrees, of the flexion of knees and elbows
    velocity: float  # m/s
    acceleration: float  # m/s^2
    jitter: float  # m/s^3, mean third derivative of the skeleton itself

    def __str__(self) -> str:
        return (
            f"{self.position:.1f} mm, {self.angle:.1f} degrees, {self.velocity:.2f} m/s, {self.acceleration:.1f} m/s2, "
            f"jitter {self.jitter:.0f} m/s3"
        )


def errors_of(found: list[tuple[F64, F64, F64]]) -> SensorErrors:
    """Return the errors of skeletons: joints and truth (T, 17, 3) m, and the times (T,) s of each, evenly spaced."""
    parts: tuple[list[F64], ...] = ([], [], [], [], [])
    position, angle, velocity, acceleration, jitter = parts
    for joints, truth, times in found:
        ours, theirs = (part - part[:, :1] for part in (joints, truth))
        rate = (len(times) - 1) / (times[-1] - times[0])
        position.append(metrics.position_errors(ours, theirs).ravel())
        for limb in LIMBS:
            bent = np.abs(flexion(joints, limb) - flexion(truth, limb))
            angle.append(bent[np.isfinite(bent)].ravel())
        off = ours - theirs
        for order, (values, into) in enumerate(((off, velocity), (off, acceleration), (ours, jitter)), start=1):
            into.append(np.linalg.norm(np.diff(values, n=order, axis=0), axis=-1).ravel() * rate**order)
    return SensorErrors(*(float(np.concatenate(part).mean()) for part in parts))


def measure_sensor(network: SensorNetwork, batches: Iterable[SensorBatch]) -> SensorErrors:
    """Return the errors of a network on fixed batches."""
    found = []
    for batch in batches:
        joints, _ = corrected(network, batch)
        for row, valid in enumerate(batch.valid):
            found.append((joints[row, valid], batch.truth[row, valid].astype(np.float64), batch.times[row, valid]))
    return errors_of(found)


def calibrate_sensor(network: SensorNetwork, batches: Iterable[SensorBatch]) -> None:
    """Set the network's calibration so that 68 % of each joint's errors on these batches are inside one sigma."""
    network.calibration[0], network.calibration[1] = 1, 0
    ratios = []
    for batch in batches:
        joints, sigma = corrected(network, batch)
        off = joints - batch.truth
        off[:, :, 1:] -= off[:, :, :1]
        ratios.append(np.log(np.maximum(np.linalg.norm(off, axis=-1), 1e-5) / sigma)[batch.valid])
    network.calibration[1] = torch.from_numpy(np.quantile(np.concatenate(ratios), SIGMA_COVERAGE, axis=0))
