"""The lifter: a stack of identical blocks that mixes the frames of one person in time.

    observations -> embed -> [ x + attention(x), x + feed-forward(x) ] x depth -> head -> decode

or a stack of recurrent cells in place of the blocks (`pose.lifter.recurrent`).

Offline, a frame sees the whole window. As a stream the network is causal: the token of the newest frame also carries
the observation of the frame that is asked for, `lookahead` frames earlier, and how many seconds ago that was. So one
set of weights serves every look-ahead at the same cost, and a step never recomputes the past.
"""

from collections.abc import Sequence
from typing import TypeAlias, cast

import torch
from torch import Tensor, nn

from pose.attention import Cache, Context, build_attentions, rotary_phases, share_maps
from pose.attention.blocks import BlockAttention
from pose.attention.neighbourhoods import NeighbourhoodAttention
from pose.lifter.adaptive import AdaptiveBlock
from pose.lifter.blocks import Block, PreciseLinear
from pose.lifter.config import LifterConfig
from pose.lifter.features import Lifted, Observations, decode
from pose.lifter.format import FEATURES, JOINTS, OUTPUTS
from pose.lifter.initialization import initialize
from pose.lifter.joints import HierarchicalEmbedding, JointBlock, JointEmbedding, JointHead, within
from pose.lifter.recurrent import RecurrentBlock, recurrent_blocks
from pose.lifter.reversible import ReversibleStack

AttentionBlock: TypeAlias = Block | JointBlock | AdaptiveBlock | ReversibleStack
LifterBlock: TypeAlias = AttentionBlock | RecurrentBlock


class LifterNetwork(nn.Module):
    """2D observations of people over time to 3D, one output for every frame."""

    def __init__(self, config: LifterConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = embedding(config)
        recurrent = config.model != "transformer"
        blocks: Sequence[LifterBlock] = recurrent_blocks(config) if recurrent else attention_blocks(config)
        self.blocks = nn.ModuleList(blocks)
        # Attention that knows no seconds gets them with its tokens. A stream has no first frame to count them from.
        told = not isinstance(blocks[0], RecurrentBlock) and not blocks[0].attention.capabilities.knows_time
        self.clock = PreciseLinear(config.dim // 2 * 2, config.dim) if told and not config.streaming else None
        width = blocks[-1].cell.width if isinstance(blocks[-1], RecurrentBlock) else config.dim
        # The cells of a recurrent stack are bounded; a stream of residuals grows with the depth.
        self.norm = nn.LayerNorm(width) if config.norm == "pre" and not recurrent else nn.Identity()
        self.head = JointHead(width) if config.tokens == "joints" else PreciseLinear(width, OUTPUTS)
        self.calibration: Tensor  # slope and offset of log sigma, set once, on held-out subjects
        self.register_buffer("calibration", torch.tensor([1.0, 0.0])[:, None].repeat(1, JOINTS - 1))
        initialize(self, config.init)
        if self.clock is not None:
            nn.init.zeros_(self.clock.weight)
        if isinstance(self.head, nn.Linear):
            nn.init.normal_(self.head.weight, std=0.01 / config.dim**0.5)
            nn.init.zeros_(self.head.bias)

    def forward(self, observations: Observations, times: Tensor, lookahead: int = 0) -> Lifted:
        """Lift (B, T) frames at `times` (B, T) float64 s.

        A frame that sees nothing, padding included, is a token like any other, one that only knows its time. When
        streaming, the answer has T - lookahead frames: frame t is answered from what was seen up to t + lookahead.
        """
        if lookahead and not self.config.streaming:
            raise ValueError("lookahead: an offline lifter sees the whole window; use a streaming lifter")
        x, context = self.tokens(observations, times, lookahead)
        for block in self.blocks:
            x = block(x, context)
        target = observations.frames(slice(0, x.shape[1]))
        return self.decode(self.head(self.norm(x)), target)

    def decode(self, outputs: Tensor, observations: Observations) -> Lifted:
        """Network outputs (B, T, OUTPUTS) in metres."""
        return decode(outputs, observations, self.calibration)

    def tokens(self, observations: Observations, times: Tensor, lookahead: int = 0) -> tuple[Tensor, Context]:
        """What enters the first block (B, T - lookahead, D), and the times that all blocks share."""
        x = self.embed(self.features(observations, times, lookahead))
        return self.timed(x, times), Context.from_times(times[:, lookahead:], self.head_dim)

    def timed(self, x: Tensor, times: Tensor) -> Tensor:
        """Tokens (B, T, D), or (B, T, J, D), that know their time, where attention does not know it by itself."""
        if self.clock is None:
            return x
        said: Tensor = self.clock(torch.cat(rotary_phases(times - times[:, :1], self.config.dim), dim=-1))
        return x + (said if x.ndim == 3 else said[:, :, None])

    @property
    def head_dim(self) -> int:
        return self.config.dim // self.config.heads

    def init_caches(self, batch: int, device: torch.device | str = "cpu") -> list[Cache]:
        """Empty caches of every block for `batch` streams."""
        blocks = [cast(LifterBlock, block) for block in self.blocks]
        return [block.init_cache(batch, device=device, dtype=torch.float32) for block in blocks]

    def step(self, token: Tensor, context: Context, caches: list[Cache]) -> tuple[Tensor, list[Cache]]:
        """One token (B, 1, 2 F + 1) of every stream to network outputs (B, 1, OUTPUTS) and the caches that follow."""
        x, caches = self.mixed_step(token, context, caches)
        return self.head(x), caches

    def mixed_step(self, token: Tensor, context: Context, caches: list[Cache]) -> tuple[Tensor, list[Cache]]:
        """The same, to what the head sees."""
        x = self.embed(token)
        following = []
        for block, cache in zip(self.blocks, caches, strict=True):
            x, cache = cast(LifterBlock, block).step(x, context, cache)
            following.append(cache)
        return self.norm(x), following

    def features(self, observations: Observations, times: Tensor, lookahead: int = 0) -> Tensor:
        """What the embedding sees of each token."""
        if not self.config.streaming:
            return observations.features
        delay = times[:, lookahead:] - times[:, : times.shape[1] - lookahead]
        newest = observations.features[:, lookahead:]
        return streaming_token(newest, observations.features[:, : newest.shape[1]], delay)


def embedding(config: LifterConfig) -> nn.Module:
    """Features of a frame to its token, or to those of its joints."""
    if config.tokens == "frames":
        return PreciseLinear(2 * FEATURES + 1 if config.streaming else FEATURES, config.dim)
    return HierarchicalEmbedding(config) if config.tokens == "hierarchical" else JointEmbedding(config)


def attention_blocks(config: LifterConfig) -> Sequence[AttentionBlock]:
    """The stack of a transformer, first block first; with `shared_layers` it is one block, `depth` times. Where half of
    the depth is among joints, the other half is here."""
    depth = config.depth - config.depth // 2 if config.tokens == "hierarchical" else config.depth
    different = 1 if config.shared_layers or config.adaptive_depth else depth
    attentions = build_attentions(
        config.attention, different, config.dim, config.heads, config.attention_options,
        causal=config.streaming, streaming=config.streaming,
    )  # fmt: skip
    if config.joint_hops:
        near = within(config.joint_hops)
        attentions = [NeighbourhoodAttention(cast(BlockAttention, attention), near) for attention in attentions]
    kind = JointBlock if config.tokens == "joints" else Block
    blocks = [kind(config, attention) for attention in share_maps(attentions, config.shared_maps)]
    if config.adaptive_depth:
        return [AdaptiveBlock(cast(Block, blocks[0]), config, depth)]
    blocks = blocks * (depth // different)
    return [ReversibleStack(cast(list[Block], blocks))] if config.residual == "reversible" else blocks


def streaming_token(newest: Tensor, target: Tensor, delay: Tensor) -> Tensor:
    """What a streaming network sees of the newest frame (.., F), the asked-for frame (.., F) and its age (..) s."""
    return torch.cat([newest, target, delay.to(newest.dtype)[..., None]], dim=-1)
