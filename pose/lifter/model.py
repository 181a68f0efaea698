"""The lifter: a stack of identical blocks that mixes the frames of one person in time.

    observations -> embed -> [ x + attention(x), x + feed-forward(x) ] x depth -> head -> decode

or a stack of recurrent cells in place of the blocks (`pose.lifter.recurrent`).

Offline, a frame sees the whole window. As a stream the network is causal: the token of the newest frame also carries
the observation of the frame that is asked for, `lookahead` frames earlier, and how many seconds ago that was. So one
set of weights serves every look-ahead at the same cost, and a step never recomputes the past.
"""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.attention import Attention, Cache, Context, build_attentions, rotary_phases
from pose.lifter.config import LifterConfig
from pose.lifter.features import Lifted, Observations, decode
from pose.lifter.format import FEATURES, JOINTS, OUTPUTS
from pose.lifter.initialization import initialize
from pose.lifter.recurrent import RecurrentBlock, recurrent_blocks


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

    def forward(self, x: Tensor, context: Context) -> Tensor:
        y: Tensor
        if self.post:
            x = self.norm1(x + self.attention(x, context))
            y = self.norm2(x + self.ffn(x))
        else:
            x = x + self.attention(self.norm1(x), context)
            y = x + self.ffn(self.norm2(x))
        return y

    @property
    def cache_fields(self) -> tuple[str, ...]:
        return self.attention.cache_fields

    def init_cache(self, batch: int, *, device: torch.device | str, dtype: torch.dtype) -> Cache:
        return self.attention.init_cache(batch, device=device, dtype=dtype)

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        self.attention.begin_step(step, generator)

    def step(self, x: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        """One new token (B, 1, D) against the cache; equal to `forward` of a causal block."""
        y, cache = self.attention.step(x if self.post else self.norm1(x), context, cache)
        x = x + y
        if self.post:
            x = self.norm1(x)
            return self.norm2(x + self.ffn(x)), cache
        return x + self.ffn(self.norm2(x)), cache


class LifterNetwork(nn.Module):
    """2D observations of people over time to 3D, one output for every frame."""

    def __init__(self, config: LifterConfig) -> None:
        super().__init__()
        self.config = config
        self.embed: nn.Linear = PreciseLinear(2 * FEATURES + 1 if config.streaming else FEATURES, config.dim)
        recurrent = config.model != "transformer"
        blocks: list[Block] | list[RecurrentBlock] = recurrent_blocks(config) if recurrent else attention_blocks(config)
        self.blocks = nn.ModuleList(blocks)
        # Attention that knows no seconds gets them with its tokens. A stream has no first frame to count them from.
        told = isinstance(blocks[0], Block) and not blocks[0].attention.capabilities.relative_time
        self.clock = PreciseLinear(config.dim // 2 * 2, config.dim) if told and not config.streaming else None
        width = config.dim if isinstance(blocks[-1], Block) else blocks[-1].cell.width
        # The cells of a recurrent stack are bounded; a stream of residuals grows with the depth.
        self.norm = nn.LayerNorm(width) if config.norm == "pre" and not recurrent else nn.Identity()
        self.head = PreciseLinear(width, OUTPUTS)
        self.calibration: Tensor  # slope and offset of log sigma, set once, on held-out subjects
        self.register_buffer("calibration", torch.tensor([1.0, 0.0])[:, None].repeat(1, JOINTS - 1))
        initialize(self, config.init)
        if self.clock is not None:
            nn.init.zeros_(self.clock.weight)
        nn.init.normal_(self.head.weight, std=0.01 / config.dim**0.5)
        nn.init.zeros_(self.head.bias)

    def forward(self, observations: Observations, times: Tensor, lookahead: int = 0) -> Lifted:
        """Lift (B, T) frames at `times` (B, T) float64 s.

        A frame that sees nothing, padding included, is a token like any other, one that only knows its time. When
        streaming, the answer has T - lookahead frames: frame t is answered from what was seen up to t + lookahead.
        """
        if lookahead and not self.config.streaming:
            raise ValueError("lookahead: an offline lifter sees the whole window; use a streaming one")
        x = self.embed(self.features(observations, times, lookahead))
        if self.clock is not None:
            x = x + self.clock(torch.cat(rotary_phases(times - times[:, :1], self.config.dim), dim=-1))
        target = observations.frames(slice(0, x.shape[1]))
        context = Context.from_times(times[:, lookahead:], self.head_dim)
        for block in self.blocks:
            x = block(x, context)
        return decode(self.head(self.norm(x)), target, self.calibration)

    @property
    def head_dim(self) -> int:
        return self.config.dim // self.config.heads

    def init_caches(self, batch: int, device: torch.device | str = "cpu") -> list[Cache]:
        """Empty caches of every block for `batch` streams."""
        blocks = [cast(Block | RecurrentBlock, block) for block in self.blocks]
        return [block.init_cache(batch, device=device, dtype=torch.float32) for block in blocks]

    def step(self, token: Tensor, context: Context, caches: list[Cache]) -> tuple[Tensor, list[Cache]]:
        """One token (B, 1, 2 F + 1) of every stream to network outputs (B, 1, OUTPUTS) and the caches that follow."""
        x = self.embed(token)
        following = []
        for block, cache in zip(self.blocks, caches, strict=True):
            x, cache = cast(Block | RecurrentBlock, block).step(x, context, cache)
            following.append(cache)
        return self.head(self.norm(x)), following

    def features(self, observations: Observations, times: Tensor, lookahead: int = 0) -> Tensor:
        """What the embedding sees of each token."""
        if not self.config.streaming:
            return observations.features
        delay = times[:, lookahead:] - times[:, : times.shape[1] - lookahead]
        newest = observations.features[:, lookahead:]
        return streaming_token(newest, observations.features[:, : newest.shape[1]], delay)


def attention_blocks(config: LifterConfig) -> list[Block]:
    """The stack of a transformer, first block first."""
    attentions = build_attentions(
        config.attention, config.depth, config.dim, config.heads, config.attention_options,
        causal=config.streaming, streaming=config.streaming,
    )  # fmt: skip
    return [Block(config, attention) for attention in attentions]


def streaming_token(newest: Tensor, target: Tensor, delay: Tensor) -> Tensor:
    """What a streaming network sees of the newest frame (.., F), the asked-for frame (.., F) and its age (..) s."""
    return torch.cat([newest, target, delay.to(newest.dtype)[..., None]], dim=-1)
