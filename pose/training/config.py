"""What a training run is: its configuration, checked, without torch, so that options are parsed before it is loaded."""

from dataclasses import dataclass, field

from pose.forecast.config import ForecasterConfig
from pose.lifter.config import LifterConfig
from pose.training.schedules import ScheduleConfig

OBJECTIVES = ("masked", "next", "any-order")  # `pose.training.objectives` has them
OPTIMIZERS = ("adam", "adamw", "radam", "muon")  # `pose.training.optimizers` builds them


@dataclass(frozen=True, kw_only=True)
class LossWeights:
    """How much each part counts in the sum. ponder: a step of a lifter with adaptive depth."""

    position: float = 1.0
    velocity: float = 2.0
    shape: float = 0.3
    root: float = 0.3
    bend: float = 0.0
    spread: float = 0.02
    ponder: float = 0.01


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """name: adam, adamw, radam or muon. lr: peak learning rate. betas, eps: of Adam.

    weight_decay: of matrices only, never of biases and norms; decoupled from the gradient in all but adam, which adds
    it to the gradient (L2). muon: the matrices of the blocks by Muon, everything else by AdamW.
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
class RunConfig:
    """What every training run has, whatever it trains.

    steps: optimiser steps. clip: largest norm of the gradient. ema: decay of the averaged weights, which are what is
    saved. precision: fp32 or bf16 (weights stay fp32). workers: processes that make batches; 0: a thread of this one.
    compile: use torch.compile.
    """

    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    steps: int = 10_000
    clip: float = 1.0
    ema: float = 0.999
    precision: str = "bf16"
    seed: int = 0
    workers: int = 0
    compile: bool = False
    log_every: int = 50
    evaluate_every: int = 1000
    checkpoint_every: int = 500

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
class TrainConfig(RunConfig):
    """One complete training run of a lifter.

    start_from: a shipped lifter or a checkpoint of the same form whose weights the run begins with; its optimiser and
    schedule restart (fine-tuning, or a second round). start_share: of those weights in the final ones, 0 to 1: what
    lies between both is often better than either where they differ (Wortsman et al., 2022). lookaheads: of a streaming
    model, frames; sampled in each step, repeat one to draw it more often. dialects: whether each sequence's scores are
    said in a dialect of its own (`pose.training.dialects`). consistency: above 0 each step trains on its batch and on
    the mirror image of it, in other dialects, and this is the weight of the distance between the two answers. The rest
    is as in `RunConfig`.
    """

    model: LifterConfig = field(default_factory=LifterConfig)
    loss: LossWeights = field(default_factory=LossWeights)
    start_from: str | None = None
    start_share: float = 0.0
    lookaheads: tuple[int, ...] = (0,)
    dialects: bool = False
    consistency: float = 0.0

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
        check_recipe(self.optimizer, self.schedule, self.model.init)


@dataclass(frozen=True, kw_only=True)
class ObjectiveConfig:
    """What a lifter learns of 2D poses alone, before it is told any 3D.

    name: masked, what is hidden from both sides of it; next, each pose from those before; any-order, poses from any
    others, in a random order. frames, joints: of masked, the share of frames hidden whole and of other joints
    hidden alone, in spans of a tenth of a second to `longest` seconds. asked: of any-order, the share of the frames,
    the last of the order, that are predicted (XLNet: 1 / 6).
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
        if self.longest < SHORTEST_SPAN:
            raise ValueError(f"objective.longest: must be at least {SHORTEST_SPAN} s, got {self.longest}")
        if not 0 < self.asked <= 1:
            raise ValueError(f"objective.asked: must be above 0 and at most 1, got {self.asked}")


SHORTEST_SPAN = 0.1  # s


@dataclass(frozen=True, kw_only=True)
class PretrainConfig(RunConfig):
    """One complete pre-training of a lifter, on 2D poses alone. `pose-train lifter` goes on from what it leaves, with
    the same model and `start_from`. The rest is as in `RunConfig`."""

    model: LifterConfig = field(default_factory=LifterConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_recipe(self.optimizer, self.schedule, self.model.init)


@dataclass(frozen=True, kw_only=True)
class ForecastLossWeights:
    """root: of the pelvis' way, beside the mean of the joints. spread: of the likelihood that trains sigma."""

    root: float = 0.3
    spread: float = 0.005


@dataclass(frozen=True, kw_only=True)
class ForecasterTrainConfig(RunConfig):
    """One complete training run of a forecaster.

    start_from: checkpoints that the run begins with: one of the same form, or, for a blended forecaster, a one-shot and
    an mlp; optimiser and schedule restart. frozen: whether these stay as they are, so that a blended forecaster
    learns nothing but how far to trust each. forcing: of networks that roll out, how long the truth of earlier steps is
    told: with probability k / (k + exp(step / k)) for forcing = k steps (scheduled sampling, Bengio et al., 2015), so
    half of the time after k ln k steps and next to never long after. The rest is as in `RunConfig`.
    """

    model: ForecasterConfig = field(default_factory=ForecasterConfig)
    loss: ForecastLossWeights = field(default_factory=ForecastLossWeights)
    start_from: tuple[str, ...] = ()
    frozen: bool = False
    forcing: float = 300.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.forcing < 1:
            raise ValueError(f"forcing: must be at least 1 step, got {self.forcing}")
        if self.frozen and not (self.start_from and self.model.kind == "blended"):
            raise ValueError("frozen: needs start_from and a blended model, which has something left to learn")
        check_recipe(self.optimizer, self.schedule, self.model.init)


def check_recipe(optimizer: OptimizerConfig, schedule: ScheduleConfig, init: str) -> None:
    """ValueError for what the theory forbids: a warm-up on top of what already replaces one."""
    if not schedule.warms_up:
        return
    if optimizer.name == "radam":
        raise ValueError(
            "optimizer.name: radam rectifies the variance of the first steps itself, which is a warm-up; with another "
            "one the rate would be damped twice. Use a schedule without warm-up, or adamw"
        )
    if init in ("t-fixup", "dt-fixup"):
        raise ValueError(
            f"init: {init} bounds the first updates by the scale of the weights, so it needs no warm-up; use "
            "schedule.warmup: none and a decay other than noam, or another init"
        )
