"""Study that trains lifters for a few hundred steps and measures them on the validation subjects.

Data, loss, optimiser and metrics are equal for all networks, including recurrent networks. Ridge regression uses the
same data and metrics.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from pose.lifting.config import FIXUPS, LifterConfig
from pose.lifting.features import Lifted, LifterInput
from pose.lifting.format import JOINTS
from pose.lifting.initialization import initialize
from pose.lifting.model import LifterNetwork
from pose.structures.sequences import LiftBatch
from pose.training.attention.adaptive_span import AdaptiveSpanAttention
from pose.training.attention.distributions.entmax import Entmax
from pose.training.batches import TensorBatch
from pose.training.config import LossWeights, OptimizerConfig
from pose.training.laboratory.ridge import RidgeLifter
from pose.training.laboratory.training import Training, TrainingStatistics
from pose.training.laboratory.trial import Outcome, Setup
from pose.training.measure import measure
from pose.training.optimizers import build_optimizer
from pose.training.schedules import ScheduleConfig, build_schedule
from pose.training.trainer import begin_step, tensor_loss
from pose.utils.json_values import Json

COLUMNS = {
    "parameters": "parameters",
    "gt": "exact 2D: MPJPE, mm",
    "gt_aligned": "P-MPJPE, mm",
    "detector": "detector's 2D: MPJPE, mm",
    "acceleration": "acceleration, mm/frame²",
    "step_ms": "processor ms a step",
    "span": "mean span learnt, s",
    "span_longest": "longest, s",
    "alpha": "mean alpha learnt",
}
MEASURED = ("gt", "gt_aligned", "detector", "acceleration")
RIDGE = "ridge"


class CubeLifter(LifterNetwork):
    """Lifter of joints relative to the pelvis, instead of along rays; the body's size gives the root's depth."""

    def decode(self, outputs: Tensor, observations: LifterInput) -> Lifted:
        along_rays = super().decode(outputs, observations)
        size, depths, _, across, _ = outputs.float().split([1, JOINTS, JOINTS, 2 * JOINTS, JOINTS - 1], dim=-1)
        joints = torch.cat([across.unflatten(-1, (JOINTS, 2)), depths[..., None]], dim=-1)
        depth = size.clamp(-3, 3).exp() / 2 / observations.spreads[..., None]
        root = torch.cat([depth * observations.centres, depth], dim=-1)
        return Lifted(joints - joints[..., :1, :], root, along_rays.sigma)


OUTPUT_FORMS = {"rays": LifterNetwork, "cube": CubeLifter}


@dataclass(frozen=True, slots=True, kw_only=True)
class LifterSettings:
    """Settings for one condition of a `lifters` experiment."""

    model: dict[str, Json]  # keys of a `LifterConfig`; or `model: ridge` with `before` and `after`, see `RidgeLifter`
    steps: int = 400  # number of optimiser steps
    frames: int = 81  # number of frames of a sequence
    sequences: int = 8  # number of sequences of a batch
    optimizer: str = "adamw"  # name of the optimiser, see `pose.training.config.OptimizerConfig`
    rate: float = 2e-3  # peak learning rate
    beta2: float = 0.98  # second coefficient of Adam's running averages
    warmup: str = "linear"  # warm-up of the learning rate, see `pose.training.schedules.ScheduleConfig`
    warmup_steps: int = 50  # length of the warm-up in steps
    decay: str = "cosine"  # decay of the learning rate, see `ScheduleConfig`
    weight_decay: float = 0.02  # weight decay of matrices
    output: str = "rays"  # `rays`, as in the lifter (`pose.video.decode`), or `cube` (`CubeLifter`)
    ponder: float = 0.01
    evaluated: int = 3  # number of batches of the validation subjects in each measurement

    def __post_init__(self) -> None:
        if self.model.get("model") != RIDGE:
            self.recipe()
        elif set(self.model) - {"model", "before", "after"}:
            raise ValueError("model: ridge has only the settings before and after")
        if self.output not in OUTPUT_FORMS:
            raise ValueError(f"output: {self.output!r} is not one of {', '.join(OUTPUT_FORMS)}")
        for name in ("steps", "frames", "sequences", "evaluated"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: must be at least 1")

    def recipe(self) -> tuple[LifterConfig, OptimizerConfig, ScheduleConfig]:
        """Build the configurations of model, optimiser and schedule."""
        config = LifterConfig.from_dict(self.model)
        optimizer = OptimizerConfig(
            name=self.optimizer, lr=self.rate, betas=(0.9, self.beta2), weight_decay=self.weight_decay
        )
        schedule = ScheduleConfig(warmup=self.warmup, decay=self.decay, warmup_steps=self.warmup_steps, final=0.0)
        return config, optimizer, schedule


def run(settings: LifterSettings, setup: Setup) -> Outcome:
    """Train a lifter: `parameters`, `metrics` and `learned_statistics`, or `measure_errors` of ridge regression."""
    batches = setup.motion().training(settings.frames, settings.sequences, setup.seed)
    examples = settings.steps * settings.sequences
    if settings.model.get("model") == RIDGE:
        frames = {name: int(str(value)) for name, value in settings.model.items() if name != "model"}
        ridge = RidgeLifter(**frames).fit(TensorBatch.of(batches(step)) for step in range(settings.steps))
        results = {"parameters": float(ridge.weight.numel())} | measure_errors(
            cast(LifterNetwork, ridge), settings, setup
        )
        return Outcome(results, 0, examples)
    network = build_lifter(settings, TensorBatch.of(batches(0)), setup.seed)
    trained = train(network, batches, settings, setup)
    results = (
        {"parameters": parameter_count(network)}
        | metrics(network, trained, settings, setup)
        | learned_statistics(network)
    )
    return Outcome(results, settings.steps, examples, trained.earlier_seconds)


def build_lifter(settings: LifterSettings, example: TensorBatch, seed: int) -> LifterNetwork:
    """Build the network with its initial weights; `example` is for data-dependent initialisation."""
    torch.manual_seed(seed)
    config = settings.recipe()[0]
    network = OUTPUT_FORMS[settings.output](config)
    if config.init in FIXUPS:
        initialize(network, config.init, network.features(example.observe(), example.times))
    return network


def train(
    network: LifterNetwork,
    batches: Callable[[int], LiftBatch],
    settings: LifterSettings,
    setup: Setup,
    stage: str = "",
) -> TrainingStatistics:
    """Train a network with the lifter's loss."""

    def loss(batch: TensorBatch, step: int) -> Tensor:
        begin_step(network, setup.seed, step)
        return tensor_loss(network, batch, 0, LossWeights(ponder=settings.ponder))[0]

    return train_with_loss(
        network, batches, loss, settings, setup, f"{stage}{settings} {setup.seed}", stage=bool(stage)
    )


def train_with_loss(
    network: nn.Module,
    batches: Callable[[int], LiftBatch],
    loss: Callable[[TensorBatch, int], Tensor],
    settings: LifterSettings,
    setup: Setup,
    name: str,
    *,
    stage: bool,
) -> TrainingStatistics:
    """Train a network in place with any loss, and with the optimiser and schedule of the settings."""
    # A saved state is used only if it has the same name. With `stage` it is kept after the end, for the trial's next
    # training.
    _, optimizer_config, schedule_config = settings.recipe()
    optimizer = build_optimizer(network, optimizer_config)
    training = Training(
        network,
        optimizer,
        build_schedule(optimizer, schedule_config, settings.steps),
        lambda step: TensorBatch.of(batches(step)),
        loss,
        name,
        stage=stage,
    )
    with sdpa_kernel(SDPBackend.MATH):  # the fused kernel's backward pass takes twice as long for small heads
        return training.run(settings.steps, setup)


def learned_statistics(network: LifterNetwork) -> dict[str, float]:
    """Return mean and longest adaptive span in s, and the mean alpha of entmax, as far as there are any."""
    spans = [part.spans for part in network.modules() if isinstance(part, AdaptiveSpanAttention)]
    free = [part for part in network.modules() if type(part) is Entmax]
    statistics: dict[str, float] = {}
    if spans:
        statistics |= {"span": torch.cat(spans).mean().item(), "span_longest": torch.cat(spans).max().item()}
    if free:
        statistics["alpha"] = torch.cat([part.alpha(torch.zeros(())).flatten() for part in free]).mean().item()
    return statistics


def parameter_count(network: LifterNetwork) -> float:
    """Return the number of parameters of a network."""
    return float(sum(parameter.numel() for parameter in network.parameters()))


def metrics(
    network: LifterNetwork, trained: TrainingStatistics, settings: LifterSettings, setup: Setup
) -> dict[str, float]:
    """Return `measure_errors`, infinite if the training diverged, and `step_ms`, the processor time of a step, ms."""
    errors = dict.fromkeys(MEASURED, math.inf) if trained.diverged else measure_errors(network, settings, setup)
    return {"step_ms": 1000 * trained.seconds / settings.steps} | errors


def measure_errors(network: LifterNetwork, settings: LifterSettings, setup: Setup) -> dict[str, float]:
    """Return MPJPE (mm) on exact and detected 2D of the validation subjects, P-MPJPE and acceleration error."""
    exact, detected = (
        measure(
            network, islice(setup.motion().evaluation("validation", condition, settings.frames), settings.evaluated)
        )
        for condition in ("gt", "detector")
    )
    errors = (exact.mpjpe, exact.p_mpjpe, detected.mpjpe, detected.acceleration)
    return dict(zip(MEASURED, errors, strict=True))
