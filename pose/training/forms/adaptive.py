"""Adaptive depth: one block is applied repeatedly, with a number of steps chosen per frame.

Axes: B batch, T time, D feature.
"""

import torch
from torch import Tensor, nn

from pose.lifting.attention import Attention, Cache, Context
from pose.lifting.blocks import Block
from pose.lifting.config import LifterConfig


class AdaptiveBlock(nn.Module):
    """A Universal Transformer block (Dehghani et al., 2018) with adaptive computation time (Graves, 2016).

    A step applies the block once. After each step every frame predicts a halting probability p = sigmoid(w.x + b) from
    its state x, with b initialised to 1. A frame halts once the sum of its probabilities exceeds 1 - `EPS`, or after
    `max_steps` steps. The output for a frame is the sum of its states weighted by p, where the last state gets the
    remainder to 1. A halted frame keeps its state, and other frames still attend to this state.

    Probabilities, halting and remainders follow Graves. The reference code of the Universal Transformer differs: it
    interpolates, updates halted frames, and can produce weights that sum to less than 1.
    """

    EPS = 0.01

    def __init__(self, block: Block, config: LifterConfig, max_steps: int) -> None:
        super().__init__()
        self.block, self.max_steps = block, max_steps
        self.halt = nn.Linear(config.dim, 1)
        self.codes = nn.Parameter(torch.empty(max_steps, config.dim))  # encodes the index of the step
        nn.init.normal_(self.codes, std=0.1)
        self.ponder_cost: Tensor | None = None  # of the last forward pass in training mode

    @property
    def attention(self) -> Attention:
        """The attention layer of the block."""
        return self.block.attention

    def forward(self, x: Tensor, context: Context) -> Tensor:
        output, steps, last_weight = self.run(x, context)
        if self.training:
            self.ponder_cost = (steps + last_weight).mean()
        return output

    def run(self, x: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        """Apply the block until all frames halt; return (B, T, D), steps (B, T) and weight (B, T) of the last state."""
        halting = _Halting(self, x)
        unrolled = torch.compiler.is_compiling() or torch.jit.is_tracing()
        for n in range(self.max_steps):
            halting.add_step(n, self.block(halting.state + self.codes[n], context))
            if not unrolled and not halting.running.any():
                break
        return halting.output, halting.steps, halting.last_weight

    @property
    def cache_fields(self) -> tuple[str, ...]:
        return tuple(f"step{n}_{field}" for n in range(self.max_steps) for field in self.block.cache_fields)

    def init_cache(self, batch: int, *, device: torch.device | str, dtype: torch.dtype) -> Cache:
        """Return empty caches for `batch` streams: one tuple of the tensors of all `max_steps` steps, in order."""
        steps = (self.block.init_cache(batch, device=device, dtype=dtype) for _ in range(self.max_steps))
        return tuple(part for cache in steps for part in cache)

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        self.block.begin_step(step, generator)

    def step(self, x: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        """Process one new token (B, 1, D) with the cache; returns its output and the new cache.

        `context` holds the time of the token. The output equals that of a causal block's `forward`. Always computes
        `max_steps` steps, because later frames may attend to the token at any depth.
        """
        halting, following = _Halting(self, x), []
        size = len(self.block.cache_fields)
        for n in range(self.max_steps):
            before = cache[n * size : (n + 1) * size]
            y, after = self.block.step(halting.state + self.codes[n], context, before)
            halting.add_step(n, y)
            following += list(after)
        return halting.output, tuple(following)


class _Halting:
    """The states, outputs and step counts of all frames between two steps of an `AdaptiveBlock`."""

    def __init__(self, block: AdaptiveBlock, x_BTD: Tensor) -> None:
        self._block, self.state = block, x_BTD
        self.output, self.steps = torch.zeros_like(x_BTD), x_BTD.new_zeros(x_BTD.shape[:2])
        self.last_weight, self._total = self.steps, self.steps
        self.running = torch.ones_like(self.steps, dtype=torch.bool)

    def add_step(self, n: int, new_BTD: Tensor) -> None:
        """Add the output of step n, and determine which frames halt; halted frames ignore it."""
        self.state = new_BTD.where(self.running[..., None], self.state)
        probability = torch.sigmoid(self._block.halt(self.state)[..., 0] + 1)
        enough = self._total + probability > 1 - self._block.EPS
        halts = self.running & enough if n + 1 < self._block.max_steps else self.running
        continues = self.running & ~halts
        weight = (1 - self._total).where(halts, probability.where(continues, 0))
        self.output = self.output + weight[..., None] * self.state
        self.last_weight = weight.where(halts, self.last_weight)
        self.steps = self.steps + self.running.to(self.steps.dtype)
        self._total, self.running = self._total + probability.where(continues, 0), continues


def ponder_cost(network: nn.Module) -> Tensor | None:
    """Return the mean ponder cost of the last forward pass in training mode, as a term for the loss.

    The ponder cost of a frame is its number of steps plus the weight of its last state; only the weight has a gradient.
    Returns None if the depth of the network is fixed, or before such a forward pass.
    """
    blocks = [module for module in network.modules() if isinstance(module, AdaptiveBlock)]
    means = [block.ponder_cost for block in blocks if block.ponder_cost is not None]
    return torch.stack(means).sum() if means else None
