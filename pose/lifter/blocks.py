"""What the blocks of a lifter are made of, whatever their tokens: feed-forward, residuals, and the block of a frame.

Axes: B batch, T time, D feature.
"""

from collections.abc import Callable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.attention import Attention, Cache, Context
from pose.lifter.config import LifterConfig


class FeedForward(nn.Module):
    """fc2(gelu(fc1(x))), position by position."""

    def __init__(self, dim: int, expansion: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, dim * expansion)
        self.fc2 = nn.Linear(dim * expansion, dim)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.fc2(F.gelu(self.fc1(x), approximate="tanh"))
        return y


class PreciseLinear(nn.Linear):
    """A linear layer that mixed precision leaves alone: 8 bits of mantissa would round a joint by millimetres."""

    def forward(self, x: Tensor) -> Tensor:
        if not torch.is_autocast_enabled(x.device.type):
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            return super().forward(x.float())


class Sum(nn.Module):
    """x + y."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


class Highway(nn.Module):
    """g y + (1 - g) x, g = sigmoid(W x + b) (Srivastava et al., 2015). b begins at -2, here a number taken off, so that
    at first a block lets most of x pass."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, dim)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + torch.sigmoid(self.gate(x) - 2) * (y - x)


class Nothing(nn.Module):
    """y: no residual."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return y


def join(config: LifterConfig) -> nn.Module:
    """How the answer y of a branch joins what went into it, x, as the configuration's `residual` says."""
    if config.residual == "highway":
        return Highway(config.dim)
    return Sum() if config.residual == "plain" else Nothing()


class Residual(nn.Module):
    """A branch beside what goes into it, with a LayerNorm before it, after the sum, or not at all."""

    def __init__(self, config: LifterConfig) -> None:
        super().__init__()
        self.post = config.norm == "post"
        self.norm = nn.LayerNorm(config.dim) if config.norm != "none" else nn.Identity()
        self.join = join(config)

    def forward(self, x: Tensor, branch: Callable[[Tensor], Tensor]) -> Tensor:
        if self.post:
            return cast(Tensor, self.norm(self.join(x, branch(x))))
        return cast(Tensor, self.join(x, branch(self.norm(x))))


class Block(nn.Module):
    """Attention and feed-forward, each with a residual; LayerNorm before, after or not at all."""

    def __init__(self, config: LifterConfig, attention: Attention) -> None:
        super().__init__()
        self.attention = attention
        self.ffn = FeedForward(config.dim, config.expansion)
        self.post = config.norm == "post"
        normalized = config.norm != "none"
        self.norm1 = nn.LayerNorm(config.dim) if normalized else nn.Identity()
        self.norm2 = nn.LayerNorm(config.dim) if normalized else nn.Identity()
        self.join1, self.join2 = join(config), join(config)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        return self.finish(x, self.attention(self.asked(x), context))

    def asked(self, x: Tensor) -> Tensor:
        """What attention sees of tokens."""
        return x if self.post else cast(Tensor, self.norm1(x))

    def finish(self, x: Tensor, y: Tensor) -> Tensor:
        """The rest of the block, once attention has said y of x."""
        if self.post:
            x = self.norm1(self.join1(x, y))
            return cast(Tensor, self.norm2(self.join2(x, self.ffn(x))))
        x = self.join1(x, y)
        return cast(Tensor, self.join2(x, self.ffn(self.norm2(x))))

    @property
    def cache_fields(self) -> tuple[str, ...]:
        return self.attention.cache_fields

    def init_cache(self, batch: int, *, device: torch.device | str, dtype: torch.dtype) -> Cache:
        return self.attention.init_cache(batch, device=device, dtype=dtype)

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        self.attention.begin_step(step, generator)

    def step(self, x: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        """One new token (B, 1, D) against the cache; equal to `forward` of a causal block."""
        y, cache = self.attention.step(self.asked(x), context, cache)
        return self.finish(x, y), cache
