"""Adam and its relatives, and which of them go together with which schedule and initialisation."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import nn
from torch.optim import Adam, AdamW, Optimizer, RAdam

from pose.lifter.schedules import ScheduleConfig

OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "adam": partial(Adam, fused=True),
    "adamw": partial(AdamW, fused=True),
    "radam": partial(RAdam, decoupled_weight_decay=True),
}


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """name: adam, adamw or radam. lr: peak learning rate. betas, eps: of Adam.

    weight_decay: of matrices only, never of biases and norms; decoupled from the gradient in adamw and radam, added to
    it (L2) in adam.
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


def build_optimizer(network: nn.Module, config: OptimizerConfig) -> Optimizer:
    """The optimiser of all parameters that train; those of fewer than two dimensions are not decayed."""
    parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return OPTIMIZERS[config.name](groups, lr=config.lr, betas=config.betas, eps=config.eps)
