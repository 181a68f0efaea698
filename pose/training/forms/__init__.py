"""Forms of the lifter network of the laboratory. Importing this package adds them to `pose.lifting.model.FORMS`.

Recurrent cells, single frames, convolutions, joint and hierarchical tokens, adaptive depth and reversible blocks.
"""

from collections.abc import Sequence
from typing import cast

from pose.lifting.attention import share_maps
from pose.lifting.blocks import Block
from pose.lifting.config import LifterConfig
from pose.lifting.model import (
    FORMS,
    LifterBlock,
    NetworkForm,
    attention_blocks,
    attention_knows_time,
    attention_layers,
    embed_frames,
)
from pose.training.attention.blocks import BlockAttention, NeighbourhoodAttention
from pose.training.forms.adaptive import AdaptiveBlock
from pose.training.forms.baselines import convolution_blocks, frame_mlp_blocks
from pose.training.forms.joints import (
    DualBlock,
    HierarchicalEmbedding,
    JointBlock,
    JointEmbedding,
    JointHead,
    joints_within_hops,
)
from pose.training.forms.recurrent import RecurrentBlock, recurrent_blocks
from pose.training.forms.reversible import ReversibleStack


def joint_blocks(config: LifterConfig) -> list[JointBlock]:
    """Return the blocks of a lifter with joint tokens, first block first; with `shared_layers` one block, repeated."""
    different = 1 if config.shared_layers else config.depth
    layers = attention_layers(config, different)
    if config.joint_hops:
        near = joints_within_hops(config.joint_hops)
        layers = [NeighbourhoodAttention(cast(BlockAttention, layer), near) for layer in layers]
    return [JointBlock(config, layer) for layer in share_maps(layers, config.shared_maps)] * (config.depth // different)


def dual_blocks(config: LifterConfig) -> list[DualBlock]:
    """Return the blocks of a lifter with joint tokens in two streams, first block first."""
    layers = attention_layers(config, 2 * config.depth)
    return [DualBlock(config, layers[2 * i : 2 * i + 2]) for i in range(config.depth)]


def frame_blocks(config: LifterConfig) -> Sequence[Block | AdaptiveBlock]:
    """Return the blocks over frame tokens. With hierarchical tokens, half of `depth` is in the embedding."""
    depth = config.depth - config.depth // 2 if config.tokens == "hierarchical" else config.depth
    different = 1 if config.shared_layers or config.adaptive_depth else depth
    layers = share_maps(attention_layers(config, different), config.shared_maps)
    blocks = [Block(config, layer) for layer in layers]
    return [AdaptiveBlock(blocks[0], config, depth)] if config.adaptive_depth else blocks * (depth // different)


def reversible_blocks(config: LifterConfig) -> list[ReversibleStack]:
    """Return all blocks as one stack that recomputes activations."""
    return [ReversibleStack(attention_blocks(config))]


def _recurrent_width(config: LifterConfig, blocks: Sequence[LifterBlock]) -> int:
    return cast(RecurrentBlock, blocks[-1]).cell.width


FORMS |= {
    "recurrent": NetworkForm(embed_frames, recurrent_blocks, lambda blocks: True, _recurrent_width, normalized=False),
    "mlp": NetworkForm(embed_frames, frame_mlp_blocks, lambda blocks: True),
    "convolution": NetworkForm(embed_frames, convolution_blocks, lambda blocks: True),
    "joints": NetworkForm(JointEmbedding, joint_blocks, attention_knows_time, head=JointHead),
    "dual": NetworkForm(JointEmbedding, dual_blocks, attention_knows_time, head=JointHead),
    "hierarchical": NetworkForm(HierarchicalEmbedding, frame_blocks, attention_knows_time),
    "adaptive": NetworkForm(embed_frames, frame_blocks, attention_knows_time),
    "reversible": NetworkForm(embed_frames, reversible_blocks, attention_knows_time),
}
