"""Adam and its relatives, Muon, and which of them go together with which schedule and initialisation."""

from collections.abc import Callable, Sequence
from functools import partial

from torch import Tensor, nn
from torch.optim import Adam, AdamW, Muon, Optimizer, RAdam
from torch.optim.optimizer import StateDict

from pose.training.config import OptimizerConfig

_ADAMS: dict[str, Callable[..., Optimizer]] = {
    "adam": partial(Adam, fused=True),
    "adamw": partial(AdamW, fused=True),
    "radam": partial(RAdam, decoupled_weight_decay=True),
}


def build_optimizer(network: nn.Module, config: OptimizerConfig) -> Optimizer:
    """The optimiser of all parameters that train; those of fewer than two dimensions are not decayed."""
    named = {name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad}
    inner = [p for name, p in named.items() if config.name == "muon" and "blocks." in name and p.ndim == 2]
    chosen = {id(parameter) for parameter in inner}
    parameters = [parameter for parameter in named.values() if id(parameter) not in chosen]
    groups: list[dict[str, object]] = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    if config.name == "muon":
        return MuonAdamW(inner, groups, config)
    return _ADAMS[config.name](groups, lr=config.lr, betas=config.betas, eps=config.eps)


class MuonAdamW(Optimizer):
    """Muon (Jordan et al., 2024) for `matrices`, whose updates it makes orthogonal; AdamW for the other `groups`.

    Muon's updates are scaled to the root mean square that AdamW's have (Liu et al., 2025), so one rate suits both.
    """

    def __init__(self, matrices: Sequence[Tensor], groups: list[dict[str, object]], config: OptimizerConfig) -> None:
        decay = config.weight_decay
        self._parts: tuple[Optimizer, Optimizer] = (
            Muon(list(matrices), lr=config.lr, weight_decay=decay, adjust_lr_fn="match_rms_adamw"),
            AdamW(groups, lr=config.lr, betas=config.betas, eps=config.eps, fused=True),
        )
        super().__init__(self._groups(), {})

    def _groups(self) -> list[dict[str, object]]:
        """Of both, the very objects, so that a schedule that changes them here changes them there."""
        return [group for part in self._parts for group in part.param_groups]

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One step of both."""
        for part in self._parts:
            part.step()

    def state_dict(self) -> StateDict:
        """The states of both."""
        return {"parts": [part.state_dict() for part in self._parts]}

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Take over the states of both."""
        for part, state in zip(self._parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self.param_groups = self._groups()
