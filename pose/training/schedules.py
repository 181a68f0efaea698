"""Learning rate schedules: factors of the configured learning rate, as the product of a warm-up and a decay.

Both are functions of the step with values of at most 1, so the configured learning rate is the largest one. Steps count
from 0, as in torch's schedulers; the formulas of the papers use the number t = step + 1 of the update.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LambdaLR


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """Configuration of the learning rate schedule, the product of a warm-up and a decay.

    Attributes:
        warmup: One of none, linear, exponential (both over `warmup_steps`), untuned-linear or untuned-exponential
            (which take their length from Adam's beta2).
        decay: One of none, linear, exponential, cosine (all from 1 to `final` at the last step), inverse-sqrt (over
            `period` steps) or noam (its own linear warm-up over `warmup_steps`, then 1 / sqrt).
        warmup_steps: Length of the warm-up in steps, except for the untuned ones.
        period: Number of steps after which inverse-sqrt has decreased to 1 / sqrt(2).
        final: Factor at the last step for linear, exponential and cosine.
    """

    warmup: str = "none"
    decay: str = "cosine"
    warmup_steps: int = 1000
    period: int = 4000
    final: float = 0.01

    def __post_init__(self) -> None:
        for field, table in (("warmup", WARMUPS), ("decay", DECAYS)):
            if getattr(self, field) not in table:
                raise ValueError(f"schedule.{field}: {getattr(self, field)!r} is not one of {', '.join(table)}")
        if self.warmup_steps < 1 or self.period < 1:
            raise ValueError("schedule.warmup_steps and schedule.period must be at least 1")
        if not 0 <= self.final <= 1 or (self.decay == "exponential" and self.final == 0):
            raise ValueError(f"schedule.final must be from 0 (exponential: above 0) to 1, got {self.final}")
        if self.decay == "noam" and self.warmup != "none":
            raise ValueError("schedule.decay: noam has its own warm-up; set schedule.warmup: none")

    @property
    def warms_up(self) -> bool:
        """Whether the learning rate starts with a warm-up."""
        return self.warmup != "none" or self.decay == "noam"


def linear_warmup(step: int, steps: float) -> float:
    """Return min(1, t / steps) for update t = step + 1."""
    return min(1.0, (step + 1) / steps)


def exponential_warmup(step: int, steps: float) -> float:
    """Return 1 - exp(-t / steps) for update t = step + 1."""
    return -math.expm1(-(step + 1) / steps)


def untuned_linear_warmup(step: int, beta2: float) -> float:
    """Return min(1, t (1 - beta2) / 2) for update t = step + 1 (Ma & Yarats, 2021)."""
    return min(1.0, (step + 1) * (1 - beta2) / 2)


def untuned_exponential_warmup(step: int, beta2: float) -> float:
    """Return 1 - exp(-(1 - beta2) t) for update t = step + 1 (Ma & Yarats, 2021)."""
    return -math.expm1(-(1 - beta2) * (step + 1))


def linear_decay(progress: float, final: float) -> float:
    """Return the factor of the learning rate, which decreases linearly from 1 to `final`."""
    return 1 + (final - 1) * progress


def exponential_decay(progress: float, final: float) -> float:
    """Return the factor of the learning rate, which decreases exponentially from 1 to `final`."""
    result: float = final**progress
    return result


def cosine_decay(progress: float, final: float) -> float:
    """Return the factor of the learning rate, which decreases as half a cosine from 1 to `final`."""
    return final + (1 - final) * (1 + math.cos(math.pi * progress)) / 2


def inverse_sqrt_decay(step: int, period: int) -> float:
    """Return sqrt(P / (P + step)) for P = `period`, the schedule of T-Fixup."""
    return math.sqrt(period / (period + step))


def noam(step: int, steps: int) -> float:
    """Return min(t / steps, sqrt(steps / t)) for update t = step + 1."""
    # This is the schedule of Vaswani et al. (2017), divided by its peak 1 / sqrt(dim steps).
    t = step + 1
    return min(t / steps, math.sqrt(steps / t))


# (step, config, beta2) -> multiplier
WARMUPS: dict[str, Callable[[int, ScheduleConfig, float], float]] = {
    "none": lambda step, config, beta2: 1.0,
    "linear": lambda step, config, beta2: linear_warmup(step, config.warmup_steps),
    "exponential": lambda step, config, beta2: exponential_warmup(step, config.warmup_steps),
    "untuned-linear": lambda step, config, beta2: untuned_linear_warmup(step, beta2),
    "untuned-exponential": lambda step, config, beta2: untuned_exponential_warmup(step, beta2),
}

# (step, config, progress from 0 at the first step to 1 at the last) -> multiplier
DECAYS: dict[str, Callable[[int, ScheduleConfig, float], float]] = {
    "none": lambda step, config, progress: 1.0,
    "linear": lambda step, config, progress: linear_decay(progress, config.final),
    "exponential": lambda step, config, progress: exponential_decay(progress, config.final),
    "cosine": lambda step, config, progress: cosine_decay(progress, config.final),
    "inverse-sqrt": lambda step, config, progress: inverse_sqrt_decay(step, config.period),
    "noam": lambda step, config, progress: noam(step, config.warmup_steps),
}


def warmup_length(config: ScheduleConfig, beta2: float) -> float:
    """Return the number of steps until the learning rate reaches its peak, or 95 % of it for exponential warm-ups."""
    if config.decay == "noam" or config.warmup == "linear":
        return config.warmup_steps
    untuned = 1 / (1 - beta2)
    lengths = {
        "exponential": 3.0 * config.warmup_steps,
        "untuned-linear": 2 * untuned,
        "untuned-exponential": 3 * untuned,
    }
    return lengths.get(config.warmup, 0)


def multiplier(step: int, config: ScheduleConfig, steps: int, beta2: float) -> float:
    """Return the factor of the learning rate at a step from 0; `beta2` is for the untuned warm-ups."""
    progress = min(1.0, step / max(1, steps - 1))
    return WARMUPS[config.warmup](step, config, beta2) * DECAYS[config.decay](step, config, progress)


def build_schedule(optimizer: "Optimizer", config: ScheduleConfig, steps: int) -> "LambdaLR":
    """Build the schedule of an optimiser with Adam's coefficients `betas` for a run of `steps` steps."""
    from torch.optim.lr_scheduler import LambdaLR  # imported here so that configurations can be read without torch

    beta2 = next(group["betas"] for group in optimizer.param_groups if "betas" in group)[1]
    return LambdaLR(optimizer, lambda step: multiplier(step, config, steps, beta2))
