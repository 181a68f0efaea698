"""Construction of optimisers: Adam and its variants, and Muon."""

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
    """Build the optimiser of all trainable parameters. Parameters with fewer than two axes have no weight decay."""
    named = {name: parameter for name, parameter in network.named_parameters() if parameter.requires_grad}
    inner = [p for name, p in named.items() if config.name == "muon" and "blocks." in name and p.ndim == 2]
    chosen = {id(parameter) for parameter in inner}
    parameters = [parameter for parameter in named.values() if id(parameter) not in chosen]
    groups: list[dict[str, object]] = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    if inner:
        return MuonAdamW(inner, groups, config)
    name = "adamw" if config.name == "muon" else config.name  # a network without matrices, such as convolutions
    return _ADAMS[name](groups, lr=config.lr, betas=config.betas, eps=config.eps)


class MuonAdamW(Optimizer):
    """Muon (Jordan et al., 2024), which orthogonalises updates, for some matrices, and AdamW for the rest."""

    # Muon's updates are scaled to the root mean square of AdamW's (Liu et al., 2025), so that one learning rate suits
    # both.

    def __init__(self, matrices: Sequence[Tensor], groups: list[dict[str, object]], config: OptimizerConfig) -> None:
        decay = config.weight_decay
        self._parts: tuple[Optimizer, Optimizer] = (
            Muon(list(matrices), lr=config.lr, weight_decay=decay, adjust_lr_fn="match_rms_adamw"),
            AdamW(groups, lr=config.lr, betas=config.betas, eps=config.eps, fused=True),
        )
        super().__init__(self._groups(), {})

    def _groups(self) -> list[dict[str, object]]:
        """Return the parameter groups of both optimisers. They are not copied, so that schedules can change them."""
        return [group for part in self._parts for group in part.param_groups]

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Run one step of both optimisers."""
        for part in self._parts:
            part.step()

    def state_dict(self) -> StateDict:
        """Return the states of both optimisers."""
        return {"parts": [part.state_dict() for part in self._parts]}

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Load the states of both optimisers."""
        for part, state in zip(self._parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self.param_groups = self._groups()
