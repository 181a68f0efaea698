"""The lifter network: a stack of identical blocks that mixes the frames of one person in time.

    observations -> embed -> [ x + attention(x), x + feed-forward(x) ] x depth -> head -> decode

Networks of other forms, such as recurrent cells or joint tokens, are built by `pose.training.forms`.

An offline network attends to the whole window. A streaming network is causal, and its output is the pose of a target
frame, `lookahead` frames before the newest one. Each token combines the features of the newest frame, those of the
target frame, and the age of the target frame in seconds. The same weights therefore work for every look-ahead at the
same cost, and a step never recomputes earlier frames.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn

from pose.lifting.attention import Attention, Cache, Context, build_attentions, rotary_phases, share_maps
from pose.lifting.blocks import Block, PreciseLinear
from pose.lifting.config import LifterConfig
from pose.lifting.features import Lifted, LifterInput, decode
from pose.lifting.format import FEATURES, JOINTS, OUTPUTS
from pose.lifting.initialization import initialize


class LifterBlock(Protocol):
    """Block of a lifter, which maps tokens (B, T, D) to tokens, all frames at once or frame by frame."""

    @property
    def cache_fields(self) -> tuple[str, ...]:
        """Names of the parts of a stream's cache, in order."""

    def __call__(self, x: Tensor, context: Context) -> Tensor:
        """Process all frames."""

    def init_cache(self, batch: int, *, device: torch.device | str, dtype: torch.dtype) -> Cache:
        """Create the empty cache for `batch` streams."""

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        """Prepare for a training step: draw random numbers."""

    def step(self, x: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        """Process the next frame of every stream; return its output and the new cache."""


class NetworkForm(NamedTuple):
    """Functions that build the parts of a lifter network."""

    embed: Callable[[LifterConfig], nn.Module]  # builds the layer that embeds features as tokens
    blocks: Callable[[LifterConfig], Sequence[LifterBlock]]  # builds the blocks, first to last
    # returns whether the blocks use relative times, so that tokens need no encoding of time
    knows_time: Callable[[Sequence[LifterBlock]], bool]
    # returns the width of the output of the last block
    width: Callable[[LifterConfig, Sequence[LifterBlock]], int] = lambda config, blocks: config.dim
    # builds the layer from outputs of this width to OUTPUTS values
    head: Callable[[int], nn.Module] = lambda width: PreciseLinear(width, OUTPUTS)
    # whether a network with `norm: pre` needs a LayerNorm before its head: the residual stream grows with the depth,
    # outputs of recurrent cells are bounded
    normalized: bool = True


class LifterNetwork(nn.Module):
    """Network that lifts 2D observations of people over time to 3D, with one output per frame."""

    def __init__(self, config: LifterConfig) -> None:
        super().__init__()
        self.config = config
        if config.form not in FORMS:
            raise ValueError(f"lifter of the form {config.form}: import pose.training.research first, which adds it")
        form = FORMS[config.form]
        self.embed = form.embed(config)
        blocks = form.blocks(config)
        self.blocks = nn.ModuleList(cast(Sequence[nn.Module], blocks))
        # Attention that ignores times gets them in its tokens, as times since the first frame, which a stream lacks.
        needs_clock = not form.knows_time(blocks) and not config.streaming
        self.clock = PreciseLinear(config.dim // 2 * 2, config.dim) if needs_clock else None
        width = form.width(config, blocks)
        self.norm = (
            nn.LayerNorm(width) if config.norm == "pre" and config.last_norm and form.normalized else nn.Identity()
        )
        self.head = form.head(width)
        self.calibration: Tensor  # slope and offset of log sigma, set once, on held-out subjects
        self.register_buffer("calibration", torch.tensor([1.0, 0.0])[:, None].repeat(1, JOINTS - 1))
        initialize(self, config.init)
        if self.clock is not None:
            nn.init.zeros_(self.clock.weight)
        if isinstance(self.head, nn.Linear):
            nn.init.normal_(self.head.weight, std=0.01 / config.dim**0.5)
            nn.init.zeros_(self.head.bias)

    def forward(self, observations: LifterInput, times: Tensor, lookahead: int = 0) -> Lifted:
        """Lift B sequences of T frames with times (B, T) float64 s.

        A frame without detected joints, such as padding, is an ordinary token that contains only its time. A streaming
        network returns T - lookahead frames, of which frame t depends on frames up to t + lookahead. A look-ahead of an
        offline network is a ValueError.
        """
        if lookahead and not self.config.streaming:
            raise ValueError("lookahead: an offline lifter processes the whole window at once; use a streaming lifter")
        x, context = self.tokens(observations, times, lookahead)
        for block in self.blocks:
            x = block(x, context)
        target = observations.frames(slice(0, x.shape[1]))
        return self.decode(self.head(self.norm(x)), target)

    def decode(self, outputs: Tensor, observations: LifterInput) -> Lifted:
        """Decode network outputs (B, T, OUTPUTS) for `observations` to 3D poses, with the calibration of sigma."""
        return decode(outputs, observations, self.calibration)

    def tokens(self, observations: LifterInput, times: Tensor, lookahead: int = 0) -> tuple[Tensor, Context]:
        """Return the input (B, T - lookahead, D) of the first block, and the context that tells attention the times.

        The arguments are those of `forward`. With joint tokens, the input is (B, T - lookahead, J, C).
        """
        x = self.embed(self.features(observations, times, lookahead))
        return self.add_time_encoding(x, times), Context.from_times(times[:, lookahead:], self.head_dim)

    def add_time_encoding(self, x: Tensor, times: Tensor) -> Tensor:
        """Add an encoding of the times to tokens (B, T, D) or (B, T, J, D), unless the blocks know them."""
        if self.clock is None:
            return x
        encoded: Tensor = self.clock(torch.cat(rotary_phases(times - times[:, :1], self.config.dim), dim=-1))
        return x + (encoded if x.ndim == 3 else encoded[:, :, None])

    @property
    def head_dim(self) -> int:
        """Width of one attention head."""
        return self.config.dim // self.config.heads

    def init_caches(self, batch: int, device: torch.device | str = "cpu") -> list[Cache]:
        """Return the empty cache of each block for `batch` streams."""
        blocks = [cast(LifterBlock, block) for block in self.blocks]
        return [block.init_cache(batch, device=device, dtype=torch.float32) for block in blocks]

    def step(self, token: Tensor, context: Context, caches: list[Cache]) -> tuple[Tensor, list[Cache]]:
        """Process one token (B, 1, 2 F + 1) per stream; return outputs (B, 1, OUTPUTS), and the new caches."""
        x, caches = self.mixed_step(token, context, caches)
        return self.head(x), caches

    def mixed_step(self, token: Tensor, context: Context, caches: list[Cache]) -> tuple[Tensor, list[Cache]]:
        """Process one token per stream like `step`, but return the input (B, 1, D) of the head, and the new caches."""
        x = self.embed(token)
        following = []
        for block, cache in zip(self.blocks, caches, strict=True):
            x, cache = cast(LifterBlock, block).step(x, context, cache)
            following.append(cache)
        return self.norm(x), following

    def features(self, observations: LifterInput, times: Tensor, lookahead: int = 0) -> Tensor:
        """Return the input of the embedding: (B, T, F), or (B, T - lookahead, 2 F + 1) of a streaming network."""
        if not self.config.streaming:
            return observations.features
        delay = times[:, lookahead:] - times[:, : times.shape[1] - lookahead]
        newest = observations.features[:, lookahead:]
        return streaming_token(newest, observations.features[:, : newest.shape[1]], delay)


def embed_frames(config: LifterConfig) -> nn.Module:
    """Return the layer that embeds features as one token per frame."""
    return PreciseLinear(2 * FEATURES + 1 if config.streaming else FEATURES, config.dim)


def attention_layers(config: LifterConfig, count: int) -> list[Attention]:
    """Build `count` attention layers of a lifter."""
    return build_attentions(
        config.attention, count, config.dim, config.heads, config.attention_options,
        causal=config.streaming, streaming=config.streaming,
    )  # fmt: skip


def attention_blocks(config: LifterConfig) -> list[Block]:
    """Return the blocks of a transformer over frames, first block first; with `shared_layers` one block, repeated."""
    different = 1 if config.shared_layers else config.depth
    layers = share_maps(attention_layers(config, different), config.shared_maps)
    return [Block(config, layer) for layer in layers] * (config.depth // different)


def attention_knows_time(blocks: Sequence[LifterBlock]) -> bool:
    """Return whether the attention of the blocks uses relative times."""
    attention = cast(Attention, cast(Any, blocks[0]).attention)
    return attention.capabilities.knows_time


def streaming_token(newest: Tensor, target: Tensor, delay: Tensor) -> Tensor:
    """Concatenate newest and target features (..., F) and the delay (s) between them, (..., 2 F + 1)."""
    return torch.cat([newest, target, delay.to(newest.dtype)[..., None]], dim=-1)


# Builders by `LifterConfig.form`; `pose.training.forms` adds those of the laboratory.
FORMS = {"frames": NetworkForm(embed_frames, attention_blocks, attention_knows_time)}
