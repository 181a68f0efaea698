"""Configuration of training runs and its validation, without torch, so that options are parsed quickly."""

from dataclasses import dataclass, field

from pose.lifting.config import FIXUPS, LifterConfig
from pose.lifting.forecast.config import ForecasterConfig
from pose.training.schedules import ScheduleConfig

OBJECTIVES = ("masked", "next", "any-order")  # implemented in `pose.training.objectives`
OPTIMIZERS = ("adam", "adamw", "radam", "muon")  # built by `pose.training.optimizers`


@dataclass(frozen=True, kw_only=True)
class LossWeights:
    """Weights of the terms of a lifter's loss, see `pose.training.losses`."""

    position: float = 1.0  # weight of the position loss
    velocity: float = 2.0  # weight of the velocity loss
    shape: float = 0.3  # weight of the shape loss
    root: float = 0.3  # weight of the root loss
    bend: float = 0.0  # weight of the bend loss
    spread: float = 0.02  # weight of the likelihood that trains sigma
    ponder: float = 0.01


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Configuration of the optimiser.

    Attributes:
        name: `adam`, `adamw`, `radam`, or `muon`: Muon for the matrices of the blocks, AdamW for all other parameters.
        lr: Peak learning rate.
        betas: Coefficients of Adam's running averages.
        eps: Term in Adam's denominator for numerical stability.
        weight_decay: Weight decay of matrices. Decoupled from the gradient, except for `adam`, which adds it to the
            gradient (L2).
    """

    name: str = "adamw"
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-8
    weight_decay: float = 0.01

    def __post_init__(self) -> None:
        if self.name not in OPTIMIZERS:
            raise ValueError(f"optimizer.name: {self.name!r} is not one of {', '.join(OPTIMIZERS)}")
        if self.lr <= 0 or self.eps <= 0 or self.weight_decay < 0:
            raise ValueError("optimizer: lr and eps must be above 0, weight_decay at least 0")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"optimizer.betas must be at least 0 and below 1, got {self.betas}")


@dataclass(frozen=True, kw_only=True)
class TrainingRunConfig:
    """Common settings of all training runs."""

    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)  # the optimiser
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)  # the learning rate schedule
    steps: int = 10_000  # number of optimiser steps
    clip: float = 1.0  # maximum norm of the gradient
    ema: float = 0.999  # decay per step of the exponential moving average of the weights, which is evaluated and saved
    precision: str = "bf16"  # `fp32` or `bf16` (weights stay fp32)
    seed: int = 0  # random seed
    workers: int = 0  # number of processes that build batches; 0 for a thread of this process
    compile: bool = False  # whether to use torch.compile
    log_every: int = 50  # number of steps between lines of the log
    evaluate_every: int = 1000  # number of steps between evaluations
    checkpoint_every: int = 500  # number of steps between checkpoints

    def __post_init__(self) -> None:
        if self.precision not in ("fp32", "bf16"):
            raise ValueError(f"precision: {self.precision!r} is not one of fp32, bf16")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed: must be 0 to 2^63 - 1, got {self.seed}")
        if self.workers < 0:
            raise ValueError(f"workers: must be at least 0, got {self.workers}")
        for name in ("steps", "log_every", "evaluate_every", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: must be at least 1, got {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class NewestConfig:
    """Options of the training for the newest frames of a window, see `pose.training.trainer`.

    Attributes:
        future: Number of frames at the end of each sequence that only the teacher sees.
        weight: Weight of the newest frame in the loss, at least 1. Weights decrease with the age of a frame towards 1.
        half_life: Age in frames after which the difference between weight and 1 has halved.
        teacher: Name of an offline lifter, or path of a checkpoint. Its output for the whole sequence is a second
            target.
        share: Weight of the loss with the teacher's output as target, above 0 to 1; the loss with the ground truth has
            the weight 1 - `share`.
    """

    future: int = 0
    weight: float = 1.0
    half_life: float = 4.0
    teacher: str | None = None
    share: float = 0.5

    def __post_init__(self) -> None:
        if self.future < 0:
            raise ValueError(f"newest.future: must be at least 0 frames, got {self.future}")
        if self.weight < 1 or self.half_life <= 0:
            raise ValueError("newest: weight must be at least 1 and half_life above 0")
        if not 0 < self.share <= 1:
            raise ValueError(f"newest.share: must be above 0 and at most 1, got {self.share}")

    @property
    def used(self) -> bool:
        """Whether these options change the training."""
        return bool(self.future or self.teacher) or self.weight > 1


@dataclass(frozen=True, kw_only=True)
class TrainConfig(TrainingRunConfig):
    """A training run of a lifter."""

    model: LifterConfig = field(default_factory=LifterConfig)  # architecture
    loss: LossWeights = field(default_factory=LossWeights)  # weights of the loss terms
    # Name of a shipped lifter, or path of a checkpoint, of equal architecture, or with a whole fraction of the blocks:
    # the others start as identities. Its weights are loaded first; optimiser and schedule restart. Several, separated
    # by commas: the mean of their weights.
    start_from: str | None = None
    # Weight of the initial network in the average of initial and trained weights, 0 to 1. The average is often more
    # accurate than either (Wortsman et al., 2022).
    start_share: float = 0.0
    # Look-aheads in frames, for streaming models; one is sampled per step. Repeat a value to sample it more often.
    lookaheads: tuple[int, ...] = (0,)
    dialects: bool = False  # whether each sequence's scores are transformed at random (`pose.training.trainer`)
    # Weight in the loss of the distance between the outputs for the batch and for its mirror image. If it is above 0,
    # training also uses the mirrored batch, whose scores are transformed differently.
    consistency: float = 0.0
    # Training for the newest frames of each sequence, for offline networks that run as a sliding window.
    newest: NewestConfig = field(default_factory=NewestConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(self.lookaheads) and not self.model.streaming:
            raise ValueError("lookaheads: only a streaming model has a look-ahead; set model.streaming")
        if not 0 <= self.start_share <= 1:
            raise ValueError(f"start_share: must be from 0 to 1, got {self.start_share}")
        if self.start_share and not self.start_from:
            raise ValueError("start_share: needs start_from")
        if self.consistency < 0:
            raise ValueError(f"consistency: must be at least 0, got {self.consistency}")
        if self.newest.used and (self.model.streaming or self.consistency):
            raise ValueError("newest: not for streaming models, and not with consistency; remove one of the two")
        check_recipe(self.optimizer, self.schedule, self.model.init)


@dataclass(frozen=True, kw_only=True)
class ObjectiveConfig:
    """The objective of pre-training on 2D poses.

    Attributes:
        name: `masked`: predict masked joints from earlier and later frames. `next`: predict each pose from earlier
            ones. `any-order`: predict poses in a random order.
        frames: Fraction of frames that are masked completely (`masked`).
        joints: Fraction of joints in the other frames that are masked individually (`masked`).
        longest: Longest masked span, s (`masked`); the shortest is 0.1 s.
        asked: Fraction of the frames that are predicted, from the end of the random order (`any-order`); 1 / 6 in
            XLNet.
    """

    name: str = "masked"
    frames: float = 0.3
    joints: float = 0.15
    longest: float = 1.0
    asked: float = 1 / 6

    def __post_init__(self) -> None:
        if self.name not in OBJECTIVES:
            raise ValueError(f"objective.name: {self.name!r} is not one of {', '.join(OBJECTIVES)}")
        if not (0 <= self.frames < 1 and 0 <= self.joints < 1 and self.frames + self.joints > 0):
            raise ValueError("objective: frames and joints must be from 0 to below 1, and not both 0")
        if self.longest < MIN_SPAN_S:
            raise ValueError(f"objective.longest: must be at least {MIN_SPAN_S} s, got {self.longest}")
        if not 0 < self.asked <= 1:
            raise ValueError(f"objective.asked: must be above 0 and at most 1, got {self.asked}")


MIN_SPAN_S = 0.1  # s


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(TrainingRunConfig):
    """A pre-training run of a lifter on 2D poses.

    `pose-train lifter` continues from its checkpoint if that has the same `model` and is given as `start_from`.
    """

    model: LifterConfig = field(default_factory=LifterConfig)  # architecture
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_recipe(self.optimizer, self.schedule, self.model.init)


@dataclass(frozen=True, kw_only=True)
class ForecastLossWeights:
    """Weights of a forecaster's loss terms."""

    root: float = 0.3  # weight of the error of the pelvis, relative to the mean error of the other joints
    spread: float = 0.005  # weight of the likelihood that trains sigma


@dataclass(frozen=True, kw_only=True)
class ForecasterTrainConfig(TrainingRunConfig):
    """A training run of a forecaster."""

    model: ForecasterConfig = field(default_factory=ForecasterConfig)  # architecture
    loss: ForecastLossWeights = field(default_factory=ForecastLossWeights)  # weights of the loss terms
    # Paths of checkpoints whose weights are loaded first: one of equal architecture, or, for a blended forecaster, a
    # `one-shot` and an `mlp`. Optimiser and schedule restart.
    start_from: tuple[str, ...] = ()
    # Whether these weights are fixed, so that a blended forecaster only learns how to blend its two parts.
    frozen: bool = False
    # Constant k of scheduled sampling (Bengio et al., 2015), in training steps, for autoregressive networks. The input
    # of a predicted step is the true earlier step with probability k / (k + exp(step / k)), otherwise the predicted
    # one. The probability is 1/2 after k ln k training steps.
    forcing: float = 300.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.forcing < 1:
            raise ValueError(f"forcing: must be at least 1 step, got {self.forcing}")
        if self.frozen and not (self.start_from and self.model.kind == "blended"):
            raise ValueError("frozen: needs start_from and model.kind: blended")
        check_recipe(self.optimizer, self.schedule, self.model.init)


@dataclass(frozen=True, kw_only=True)
class SensorLossWeights:
    """Weights of the terms of a sensor network's loss, see `pose.training.sensor`."""

    position: float = 1.0  # weight of the mean error of the joints about the pelvis
    pelvis: float = 0.3  # weight of the error of the pelvis
    velocity: float = 1.0  # weight of the error of the motion between frames
    acceleration: float = 0.5  # weight of the error of its change
    spread: float = 0.02  # weight of the likelihood that trains sigma


@dataclass(frozen=True, kw_only=True)
class SensorTrainConfig(TrainingRunConfig):
    """A training run of a sensor network."""

    model: LifterConfig = field(default_factory=LifterConfig)  # architecture
    loss: SensorLossWeights = field(default_factory=SensorLossWeights)  # weights of the loss terms

    def __post_init__(self) -> None:
        super().__post_init__()
        check_recipe(self.optimizer, self.schedule, self.model.init)


def check_recipe(optimizer: OptimizerConfig, schedule: ScheduleConfig, init: str) -> None:
    """Check that optimiser, schedule and initialisation can be combined."""
    if not schedule.warms_up:
        return
    if optimizer.name == "radam":
        raise ValueError(
            "optimizer.name: radam already reduces the learning rate of the first steps; use it with a "
            "schedule without warm-up, or use adamw"
        )
    if init in FIXUPS:
        raise ValueError(
            f"init: {init} bounds the first updates by the scale of the weights, so it needs no warm-up; use "
            "schedule.warmup: none and a decay other than noam, or another init"
        )
