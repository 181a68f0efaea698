"""Study of pre-training on the 2D poses of all training subjects, then fine-tuning on the 3D poses of some of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

import torch
from torch import Tensor

from pose.lifting.model import LifterNetwork
from pose.structures.sequences import LiftBatch
from pose.training.batches import TensorBatch, generator
from pose.training.config import OBJECTIVES, ObjectiveConfig
from pose.training.laboratory.studies import lifters
from pose.training.laboratory.training import TrainingStatistics
from pose.training.laboratory.trial import Outcome, Setup
from pose.training.objectives.pretraining import Pretraining, measure_objective
from pose.training.trainer import begin_step
from pose.utils.json_values import Json

SHARES = {"1/16": 1 / 16, "1/10": 1 / 10, "1/4": 1 / 4, "all": 1.0}
COLUMNS = {
    **{share: f"3D of {share} of the subjects: MPJPE, mm" for share in SHARES},
    "distance": "what it predicts is off by, body spreads",
    "simple": "a simple guess by",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingSettings:
    """Settings for one condition of a `pretraining` experiment; further ones as in `lifters.LifterSettings`."""

    model: dict[str, Json]
    objective: str = "none"  # `none`, or one of `pose.training.config.OBJECTIVES`, on 2D poses of all training subjects
    first: int = 400  # number of steps of pre-training
    steps: int = 200  # number of steps of fine-tuning
    shares: list[str] = field(default_factory=lambda: list(SHARES))
    frames: int = 54
    sequences: int = 6
    optimizer: str = "muon"
    rate: float = 3e-3
    warmup: str = "linear"
    warmup_steps: int = 50
    evaluated: int = 2

    def __post_init__(self) -> None:
        if self.objective not in ("none", *OBJECTIVES):
            raise ValueError(f"objective: {self.objective!r} is not one of none, {', '.join(OBJECTIVES)}")
        if unknown := [str(share) for share in self.shares if share not in SHARES]:
            raise ValueError(f"shares: {unknown[0]!r} is not one of {', '.join(SHARES)}")
        if self.model.get("model") == lifters.RIDGE:
            raise ValueError("model: ridge is solved in one step and cannot be pre-trained")
        if self.first < 1:
            raise ValueError("first: must be at least 1")
        self.lifter(self.steps)

    def lifter(self, steps: int) -> lifters.LifterSettings:
        """Return the settings for training a lifter with this number of steps."""
        return lifters.LifterSettings(
            model=self.model, steps=steps, frames=self.frames, sequences=self.sequences, optimizer=self.optimizer,
            rate=self.rate, warmup=self.warmup, warmup_steps=self.warmup_steps, evaluated=self.evaluated,
        )  # fmt: skip


def run(settings: PretrainingSettings, setup: Setup) -> Outcome:
    """Pre-train a lifter, fine-tune it for each of `shares`; return MPJPE, mm, on exact 2D by the share's name.

    An interrupted training is continued. `distance` and `simple` are those of `measure_objective`, if pre-trained.
    """
    motion = setup.motion()
    everybody = motion.training(settings.frames, settings.sequences, setup.seed)
    network = lifters.build_lifter(settings.lifter(settings.steps), TensorBatch.of(everybody(0)), setup.seed)
    results: dict[str, float] = {}
    parts: list[TrainingStatistics] = []
    stages = {name: setup.stage(name.replace("/", "-")) for name in ("first", *settings.shares)}
    if settings.objective != "none":
        objective, trained = _pretrained(network, everybody, settings, stages["first"])
        parts.append(trained)
        results |= _predictions(objective, settings, setup, trained.diverged)
    pretrained_weights = {name: weights.clone() for name, weights in network.state_dict().items()}
    for share in settings.shares:
        network.load_state_dict(pretrained_weights)
        batches = motion.training(settings.frames, settings.sequences, setup.seed, SHARES[share])
        recipe = settings.lifter(settings.steps)
        trained = lifters.train(network, batches, recipe, stages[share], f"{settings} {share} ")
        diverged = trained.diverged or (bool(parts) and parts[0].diverged)
        results[share] = math.inf if diverged else lifters.measure_errors(network, recipe, setup)["gt"]
        parts.append(trained)
    for stage in stages.values():
        stage.state.unlink(missing_ok=True)
    steps = settings.steps + (settings.first if settings.objective != "none" else 0)
    return Outcome(results, steps, steps * settings.sequences, sum(part.earlier_seconds for part in parts))


def _pretrained(
    network: LifterNetwork, batches: Callable[[int], LiftBatch], settings: PretrainingSettings, setup: Setup
) -> tuple[Pretraining, TrainingStatistics]:
    """Pre-train `network` in place, and return its objective and statistics of the training."""
    objective = Pretraining(network, ObjectiveConfig(name=settings.objective))

    def loss(batch: TensorBatch, step: int) -> Tensor:
        begin_step(network, setup.seed, step)
        result: Tensor = objective(batch, generator(torch.device("cpu"), setup.seed, step, "asked")).loss()
        return result

    recipe = settings.lifter(settings.first)
    return objective, lifters.train_with_loss(
        objective, batches, loss, recipe, setup, f"{settings} {setup.seed}", stage=True
    )


def _predictions(
    objective: Pretraining, settings: PretrainingSettings, setup: Setup, diverged: bool
) -> dict[str, float]:
    if diverged:
        return {"distance": math.inf}
    batches = setup.motion().evaluation("validation", "gt", settings.frames)
    metrics = measure_objective(objective, islice(batches, settings.evaluated))
    return {name: metrics[name] for name in ("distance", "simple")}
