"""The lifter network: a stack of identical blocks that mixes the frames of one person in time.

    observations -> embed -> [ x + attention(x), x + feed-forward(x) ] x depth -> head -> decode

Recurrent models have a stack of cells instead of the blocks (`pose.training.forms.recurrent`).

An offline network attends to the whole window. A streaming network is causal, and its output is the pose of a target
frame, `lookahead` frames before the newest one. Each token combines the features of the newest frame, those of the
target frame, and the age of the target frame in seconds. The same weights therefore work for every look-ahead at the
same cost, and a step never recomputes earlier frames.
"""

from collections.abc import Sequence
from typing import TypeAlias, cast

import torch
from torch import Tensor, nn

from pose.lifting.attention import Cache, Context, build_attentions, rotary_phases, share_maps
from pose.lifting.blocks import Block, PreciseLinear
from pose.lifting.config import LifterConfig
from pose.lifting.features import Lifted, LifterInput, decode
from pose.lifting.format import FEATURES, JOINTS, OUTPUTS
from pose.lifting.initialization import initialize
from pose.training.attention.blocks import BlockAttention
from pose.training.attention.neighbourhoods import NeighbourhoodAttention
from pose.training.forms.adaptive import AdaptiveBlock
from pose.training.forms.joints import HierarchicalEmbedding, JointBlock, JointEmbedding, JointHead, joints_within_hops
from pose.training.forms.recurrent import RecurrentBlock, recurrent_blocks
from pose.training.forms.reversible import ReversibleStack

AttentionBlock: TypeAlias = Block | JointBlock | AdaptiveBlock | ReversibleStack
LifterBlock: TypeAlias = AttentionBlock | RecurrentBlock


class LifterNetwork(nn.Module):
    """Network that lifts 2D observations of people over time to 3D, with one output per frame."""

    def __init__(self, config: LifterConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = embedding(config)
        recurrent = config.model != "transformer"
        blocks: Sequence[LifterBlock] = recurrent_blocks(config) if recurrent else attention_blocks(config)
        self.blocks = nn.ModuleList(blocks)
        # Attention that ignores times gets them in its tokens, as times since the first frame, which a stream lacks.
        needs_clock = not isinstance(blocks[0], RecurrentBlock) and not blocks[0].attention.capabilities.knows_time
        self.clock = PreciseLinear(config.dim // 2 * 2, config.dim) if needs_clock and not config.streaming else None
        width = blocks[-1].cell.width if isinstance(blocks[-1], RecurrentBlock) else config.dim
        # Outputs of recurrent cells are bounded; the residual stream grows with the depth.
        normalized = config.norm == "pre" and config.last_norm and not recurrent
        self.norm = nn.LayerNorm(width) if normalized else nn.Identity()
        self.head = JointHead(width) if config.tokens == "joints" else PreciseLinear(width, OUTPUTS)
        self.calibration: Tensor  # slope and offset of log sigma, set once, on held-out subjects
        self.register_buffer("calibration", torch.tensor([1.0, 0.0])[:, None].repeat(1, JOINTS - 1))
        initialize(self, config.init)
        if self.clock is not None:
            nn.init.zeros_(self.clock.weight)
        if isinstance(self.head, nn.Linear):
            nn.init.normal_(self.head.weight, std=0.01 / config.dim**0.5)
            nn.init.zeros_(self.head.bias)

    def forward(self, observations: LifterInput, times: Tensor, lookahead: int = 0) -> Lifted:
        """Lift B sequences of T frames.

        A frame without detected joints, such as padding, is an ordinary token that contains only its time. A streaming
        network returns T - lookahead frames. Its output for frame t depends on frames up to t + lookahead.

        Args:
            observations: Network inputs of the sequences.
            times: (B, T) float64 s, times of the frames.
            lookahead: Number of later frames that each output uses; 0 for an offline network.

        Raises:
            ValueError: If an offline network has a look-ahead.
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
        """Add an encoding of the times to tokens (B, T, D) or (B, T, J, D).

        Returns the tokens unchanged if the attention itself uses relative times, and for streaming and recurrent
        networks.
        """
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
        """Process one token per stream.

        Args:
            token: (B, 1, 2 F + 1) input, see `streaming_token`.
            context: Times of the tokens.
            caches: Cache of each block.

        Returns:
            Network outputs (B, 1, OUTPUTS), and the new caches.
        """
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
        """Return the input of the embedding: (B, T, F), or (B, T - lookahead, 2 F + 1) of a streaming network.

        The arguments are those of `forward`.
        """
        if not self.config.streaming:
            return observations.features
        delay = times[:, lookahead:] - times[:, : times.shape[1] - lookahead]
        newest = observations.features[:, lookahead:]
        return streaming_token(newest, observations.features[:, : newest.shape[1]], delay)


def embedding(config: LifterConfig) -> nn.Module:
    """Return the layer that embeds features as one frame token or as joint tokens."""
    if config.tokens == "frames":
        return PreciseLinear(2 * FEATURES + 1 if config.streaming else FEATURES, config.dim)
    return HierarchicalEmbedding(config) if config.tokens == "hierarchical" else JointEmbedding(config)


def attention_blocks(config: LifterConfig) -> Sequence[AttentionBlock]:
    """Return the blocks of a transformer, first block first.

    With `shared_layers` one block is repeated `depth` times. With hierarchical tokens, only the blocks over frames are
    returned, half of `depth`. The other half are in the embedding.
    """
    depth = config.depth - config.depth // 2 if config.tokens == "hierarchical" else config.depth
    different = 1 if config.shared_layers or config.adaptive_depth else depth
    attentions = build_attentions(
        config.attention, different, config.dim, config.heads, config.attention_options,
        causal=config.streaming, streaming=config.streaming,
    )  # fmt: skip
    if config.joint_hops:
        near = joints_within_hops(config.joint_hops)
        attentions = [NeighbourhoodAttention(cast(BlockAttention, attention), near) for attention in attentions]
    kind = JointBlock if config.tokens == "joints" else Block
    blocks = [kind(config, attention) for attention in share_maps(attentions, config.shared_maps)]
    if config.adaptive_depth:
        return [AdaptiveBlock(cast(Block, blocks[0]), config, depth)]
    blocks = blocks * (depth // different)
    return [ReversibleStack(cast(list[Block], blocks))] if config.residual == "reversible" else blocks


def streaming_token(newest: Tensor, target: Tensor, delay: Tensor) -> Tensor:
    """Concatenate the inputs of a streaming network for one output, (..., 2 F + 1).

    Args:
        newest: (..., F) features of the newest frame.
        target: (..., F) features of the target frame, whose pose is returned.
        delay: (...) time from the target frame to the newest frame, s.
    """
    return torch.cat([newest, target, delay.to(newest.dtype)[..., None]], dim=-1)
