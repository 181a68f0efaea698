"""Parts of the blocks of a lifter: feed-forward layer, residual connections, and the block for frame tokens.

Axes: B batch, T time, D feature.
"""

from collections.abc import Callable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention import Attention, Cache, Context
from pose.lifting.config import LifterConfig


class FeedForward(nn.Module):
    """Position-wise feed-forward layer fc2(gelu(fc1(x)))."""

    def __init__(self, dim: int, expansion: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, dim * expansion)
        self.fc2 = nn.Linear(dim * expansion, dim)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.fc2(F.gelu(self.fc1(x), approximate="tanh"))
        return y


class PreciseLinear(nn.Linear):
    """Linear layer that computes in float32 even under autocast, because bfloat16 would round joints by millimetres."""

    def forward(self, x: Tensor) -> Tensor:
        if not torch.is_autocast_enabled(x.device.type):
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            return super().forward(x.float())


class Sum(nn.Module):
    """Residual connection x + y."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


class Highway(nn.Module):
    """Highway connection g y + (1 - g) x with g = sigmoid(W x + b) (Srivastava et al., 2015)."""

    # The gate starts with a bias of -2, so that a block initially passes most of x.

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, dim)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x + torch.sigmoid(self.gate(x) - 2) * (y - x)


class NoResidual(nn.Module):
    """Placeholder for a residual connection, which ignores the input x and returns y."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return y


def residual_connection(config: LifterConfig) -> nn.Module:
    """Return the layer that combines a branch's input x with its output y, as set by the configuration's `residual`."""
    if config.residual == "highway":
        return Highway(config.dim)
    return Sum() if config.residual == "plain" else NoResidual()


class Residual(nn.Module):
    """Residual connection around a branch, with LayerNorm before the branch, after the sum, or not at all."""

    def __init__(self, config: LifterConfig) -> None:
        super().__init__()
        self.post = config.norm == "post"
        self.norm = nn.LayerNorm(config.dim) if config.norm != "none" else nn.Identity()
        self.join = residual_connection(config)

    def forward(self, x: Tensor, branch: Callable[[Tensor], Tensor]) -> Tensor:
        if self.post:
            return cast(Tensor, self.norm(self.join(x, branch(x))))
        return cast(Tensor, self.join(x, branch(self.norm(x))))


class Block(nn.Module):
    """Attention and feed-forward layer, each with a residual connection, and LayerNorm before, after or absent."""

    def __init__(self, config: LifterConfig, attention: Attention) -> None:
        super().__init__()
        self.attention = attention
        self.ffn = FeedForward(config.dim, config.expansion)
        self.post = config.norm == "post"
        normalized = config.norm != "none"
        self.norm1 = nn.LayerNorm(config.dim) if normalized else nn.Identity()
        self.norm2 = nn.LayerNorm(config.dim) if normalized else nn.Identity()
        self.join1, self.join2 = residual_connection(config), residual_connection(config)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        return self.finish(x, self.attention(self.attention_input(x), context))

    def attention_input(self, x: Tensor) -> Tensor:
        """Return the input of the attention layer: `x`, after LayerNorm if the configuration has `norm: pre`."""
        return x if self.post else cast(Tensor, self.norm1(x))

    def finish(self, x: Tensor, y: Tensor) -> Tensor:
        """Apply the rest of the block to its input `x` and the output `y` of its attention layer."""
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
        """Process one new token (B, 1, D) as a causal block's `forward`; returns output and new cache."""
        y, cache = self.attention.step(self.attention_input(x), context, cache)
        return self.finish(x, y), cache
