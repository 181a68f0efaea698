"""A reversible stack of blocks, which recomputes activations in the backward pass (Gomez et al., 2017; Reformer).

    y1 = x1 + attention(x2)      x2 = y2 - feed-forward(y1)
    y2 = x2 + feed-forward(y1)   x1 = y1 - attention(x2)

Axes: B batch, T time, D feature.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from pose.lifting.attention import Attention, Cache, Context
from pose.lifting.blocks import Block


class ReversibleStack(nn.Module):
    """Blocks over two streams x1 and x2, without LayerNorm or with one before each branch.

    Both streams start as the token, and the output is their mean. At any depth, training stores the activations of one
    block only, and it computes each block twice. Discrete choices of attention in the first pass (Reformer's chunks)
    are stored and reused, because recomputed inputs differ by rounding and might be hashed differently.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    @property
    def attention(self) -> Attention:
        """The attention layer of the first block."""
        return self._each()[0].attention

    def _each(self) -> list[Block]:
        return [cast(Block, block) for block in self.blocks]

    def forward(self, x: Tensor, context: Context) -> Tensor:
        y1, y2 = self.run(x, x, context)
        return (y1 + y2) / 2

    def run(self, x1: Tensor, x2: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        """Apply the blocks to streams `x1` and `x2`, (B, T, D) each; returns both output streams."""
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            parameters = [parameter for parameter in self.parameters() if parameter.requires_grad]
            y1, y2 = _Recomputed.apply(self, context, parameters, x1, x2, *parameters)  # type: ignore[no-untyped-call, unused-ignore]
            return y1, y2
        for block in self._each():
            x1, x2 = _forward(block, x1, x2, context)
        return x1, x2

    def invert(self, y1: Tensor, y2: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        """Compute the inputs of `run` from its outputs `y1` and `y2`, for an equal `context`."""
        for block in reversed(self._each()):
            y2 = y2 - _feed_forward(block, y1)
            y1 = y1 - _attention_output(block, y2, context)
        return y1, y2

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        for block in self._each():
            block.begin_step(step, generator)

    @property
    def cache_fields(self) -> tuple[str, ...]:
        return tuple(f"block{n}_{field}" for n, block in enumerate(self._each()) for field in block.cache_fields)

    def init_cache(self, batch: int, *, device: torch.device | str, dtype: torch.dtype) -> Cache:
        caches = (block.init_cache(batch, device=device, dtype=dtype) for block in self._each())
        return tuple(part for cache in caches for part in cache)

    def step(self, x: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        """Process one new token (B, 1, D) as a causal `forward`; returns its output and the new cache."""
        x1 = x2 = x
        following: list[Tensor] = []
        for block in self._each():
            count = len(block.cache_fields)
            y, kept = block.attention.step(block.attention_input(x2), context, cache[:count])
            following, cache = [*following, *kept], cache[count:]
            x1 = x1 + y
            x2 = x2 + _feed_forward(block, x1)
        return (x1 + x2) / 2, tuple(following)


def _attention_output(block: Block, x2: Tensor, context: Context) -> Tensor:
    y: Tensor = block.attention(block.attention_input(x2), context)
    return y


def _feed_forward(block: Block, y1: Tensor) -> Tensor:
    y: Tensor = block.ffn(block.norm2(y1))
    return y


def _forward(block: Block, x1: Tensor, x2: Tensor, context: Context) -> tuple[Tensor, Tensor]:
    y1 = x1 + _attention_output(block, x2, context)
    return y1, x2 + _feed_forward(block, y1)


class _Recomputed(torch.autograd.Function):
    """The stack with a backward pass that computes the input of each block from its output."""

    @staticmethod
    def forward(
        ctx: Any, stack: ReversibleStack, context: Context, parameters: list[Tensor], x1: Tensor, x2: Tensor, *_: Tensor
    ) -> tuple[Tensor, Tensor]:
        ctx.stack, ctx.context, ctx.parameters = stack, context, parameters
        ctx.autocast = torch.is_autocast_enabled(x1.device.type), torch.get_autocast_dtype(x1.device.type)
        ctx.chosen = []
        x1, x2 = x1.clone(), x2.clone()  # autograd needs distinct tensors, even if both streams start as the same one
        for block in stack._each():
            x1, x2 = _forward(block, x1, x2, context)
            ctx.chosen.append(context.find_stored(block.attention))
        ctx.save_for_backward(x1, x2)
        return x1, x2

    @staticmethod
    def backward(ctx: Any, d1: Tensor, d2: Tensor) -> tuple[Tensor | None, ...]:
        y1, y2 = ctx.saved_tensors
        again = replace(ctx.context, replay=True)
        gradients: dict[Tensor, Tensor] = {}
        enabled, dtype = ctx.autocast
        with torch.autocast(y1.device.type, enabled=enabled, dtype=dtype):
            for block, chosen in zip(reversed(ctx.stack._each()), reversed(ctx.chosen), strict=True):
                if chosen is not None:
                    again.store(block.attention, chosen)
                y2, d_y1 = _Branch([block.norm2, block.ffn], partial(_feed_forward, block)).backward(
                    y2, y1, d2, gradients
                )
                d1 = d1 + d_y1
                attention = _Branch([block.norm1, block.attention], partial(_attention_output, block, context=again))
                y1, d_x2 = attention.backward(y1, y2, d1, gradients)
                d2 = d2 + d_x2
        return None, None, None, d1, d2, *(gradients.get(parameter) for parameter in ctx.parameters)


@dataclass(frozen=True, slots=True)
class _Branch:
    """A branch, whose output is added to one of the two streams."""

    modules: list[nn.Module]  # modules that own the parameters of the branch
    run: Callable[[Tensor], Tensor]  # function that computes the branch

    def backward(self, total: Tensor, x: Tensor, d: Tensor, gradients: dict[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Invert the branch and backpropagate: return the stream before the addition, and the gradient of x."""
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = self.run(x)
        parameters = [p for module in self.modules for p in module.parameters() if p.requires_grad]
        d_x, *found = torch.autograd.grad(y, [x, *parameters], d.to(y.dtype), allow_unused=True)
        for parameter, gradient in zip(parameters, found, strict=True):
            if gradient is not None:
                before = gradients.get(parameter)
                gradients[parameter] = gradient if before is None else before + gradient
        return total - y.detach(), d_x
