"""A lifter trained for so many steps and measured on the validation subjects: the same data, loss, optimiser and
measure for every network, recurrent ones and ridge regression included."""

import math
from dataclasses import dataclass
from itertools import islice
from typing import cast

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from pose.laboratory.ridge import RidgeLifter
from pose.laboratory.training import Training
from pose.laboratory.trial import Outcome, Setup
from pose.lifter.config import LifterConfig
from pose.lifter.initialization import initialize
from pose.lifter.model import Block, LifterNetwork
from pose.lifter.recurrent import RecurrentBlock
from pose.system.json_values import Json
from pose.training.batches import TensorBatch, generator
from pose.training.config import LossWeights, OptimizerConfig
from pose.training.measure import measure
from pose.training.optimizers import build_optimizer
from pose.training.schedules import ScheduleConfig, build_schedule
from pose.training.trainer import tensor_loss

COLUMNS = {
    "parameters": "parameters",
    "gt": "exact 2D: MPJPE, mm",
    "gt_aligned": "P-MPJPE, mm",
    "detector": "detector's 2D: MPJPE, mm",
    "acceleration": "acceleration, mm/frame²",
    "step_ms": "processor ms a step",
}
MEASURED = ("gt", "gt_aligned", "detector", "acceleration")
RIDGE = "ridge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """model: a `LifterConfig`, or {model: ridge, before: frames, after: frames}. frames, sequences: of a batch. rate:
    the peak of the schedule."""

    model: dict[str, Json]
    steps: int = 400
    frames: int = 81
    sequences: int = 8
    optimizer: str = "adamw"
    rate: float = 2e-3
    beta2: float = 0.98
    warmup: str = "linear"
    warmup_steps: int = 50
    decay: str = "cosine"
    evaluated: int = 3

    def __post_init__(self) -> None:
        if self.model.get("model") != RIDGE:
            self.recipe()
        elif set(self.model) - {"model", "before", "after"}:
            raise ValueError("model: ridge has the settings before and after alone")
        for name in ("steps", "frames", "sequences", "evaluated"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: must be at least 1")

    def recipe(self) -> tuple[LifterConfig, OptimizerConfig, ScheduleConfig]:
        """Raises ValueError for what cannot be."""
        config = LifterConfig.from_dict(self.model)
        optimizer = OptimizerConfig(name=self.optimizer, lr=self.rate, betas=(0.9, self.beta2), weight_decay=0.02)
        schedule = ScheduleConfig(warmup=self.warmup, decay=self.decay, warmup_steps=self.warmup_steps, final=0.0)
        return config, optimizer, schedule


def run(settings: Settings, setup: Setup) -> Outcome:
    """Train, then measure exact 2D and a detector's on the first batches of the validation subjects."""
    batches = setup.motion().training(settings.frames, settings.sequences, setup.seed)
    examples = settings.steps * settings.sequences
    if settings.model.get("model") == RIDGE:
        frames = {name: int(str(value)) for name, value in settings.model.items() if name != "model"}
        ridge = RidgeLifter(**frames).fit(TensorBatch.of(batches(step)) for step in range(settings.steps))
        results = {"parameters": float(ridge.weight.numel())} | _measured(cast(LifterNetwork, ridge), settings, setup)
        return Outcome(results, 0, examples)
    torch.manual_seed(setup.seed)
    config, optimizer_config, schedule_config = settings.recipe()
    network = LifterNetwork(config)
    if config.init in ("t-fixup", "dt-fixup"):
        example = TensorBatch.of(batches(0))
        initialize(network, config.init, network.features(example.observe(), example.times))
    optimizer = build_optimizer(network, optimizer_config)

    def loss(batch: TensorBatch, step: int) -> Tensor:
        for layer, block in enumerate(network.blocks):
            random_numbers = generator(torch.device("cpu"), setup.seed, step, layer)
            cast(Block | RecurrentBlock, block).begin_step(step, random_numbers)
        return tensor_loss(network, batch, 0, LossWeights())[0]

    schedule = build_schedule(optimizer, schedule_config, settings.steps)
    training = Training(
        network, optimizer, schedule, lambda step: TensorBatch.of(batches(step)), loss, f"{settings} {setup.seed}"
    )
    with sdpa_kernel(SDPBackend.MATH):  # the backward pass of the fused one takes twice as long for heads so small
        trained = training.run(settings.steps, setup)
    results = {
        "parameters": float(sum(parameter.numel() for parameter in network.parameters())),
        "step_ms": 1000 * trained.seconds / settings.steps,
    }
    measured = dict.fromkeys(MEASURED, math.inf) if trained.diverged else _measured(network, settings, setup)
    return Outcome(results | measured, settings.steps, examples, trained.before)


def _measured(network: LifterNetwork, settings: Settings, setup: Setup) -> dict[str, float]:
    exact, detected = (
        measure(
            network, islice(setup.motion().evaluation("validation", condition, settings.frames), settings.evaluated)
        )
        for condition in ("gt", "detector")
    )
    figures = (exact.mpjpe, exact.p_mpjpe, detected.mpjpe, detected.acceleration)
    return dict(zip(MEASURED, figures, strict=True))
