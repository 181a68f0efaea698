"""Joint tokens: one token per joint and frame instead of one per frame.

There are three designs. In the first, every block mixes the tokens in space (the joints of a frame) and then in time
(each joint separately), as in MixSTE (Zhang et al., 2022). In the second, every block has two streams, one in this
order and one in the other, as in MotionBERT (Zhu et al., 2023). In the third, half of the blocks mix the joints of a
frame. The joints are then pooled into a frame token, as Yang et al. (2016) pool words into sentences.

Axes: B batch, T time, J joint (17), C feature of a joint token, F feature of a frame, H head, K feature of one head.
"""

from collections.abc import Callable, Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention import Attention, Cache, Context
from pose.lifting.blocks import Block, FeedForward, PreciseLinear, Residual
from pose.lifting.config import LifterConfig
from pose.lifting.format import FEATURES, JOINTS, OUTPUTS, PELVIS
from pose.structures.skeletons import H36M17
from pose.training.attention.co_attention import summary

JOINT_FEATURES = 4  # features of one joint: offset (2), score, whether the joint is detected
FRAME_FEATURES = FEATURES - JOINT_FEATURES * JOINTS


class JointEmbedding(nn.Module):
    """Embedding of features (..., F), streaming (..., 2 F + 1), as joint tokens (..., J, C)."""

    # A token combines the features of its joint, the features of its frame, and a learned embedding of the joint.

    def __init__(self, config: LifterConfig) -> None:
        super().__init__()
        frames = 2 if config.streaming else 1
        self.linear = PreciseLinear(frames * (JOINT_FEATURES + FRAME_FEATURES) + frames - 1, config.dim)
        self.places = nn.Parameter(torch.empty(JOINTS, config.dim))
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        nn.init.normal_(self.places, std=0.3)

    def forward(self, features: Tensor) -> Tensor:
        parts = []
        for frame in features.split(FEATURES, dim=-1):  # of a stream: newest frame, target frame, age
            if frame.shape[-1] < FEATURES:
                parts.append(_expanded_to_joints(frame))
                continue
            offsets, scores, mask, common = frame.split([2 * JOINTS, JOINTS, JOINTS, FRAME_FEATURES], dim=-1)
            parts += [
                offsets.unflatten(-1, (JOINTS, 2)),
                scores[..., None],
                mask[..., None],
                _expanded_to_joints(common),
            ]
        tokens: Tensor = self.linear(torch.cat(parts, dim=-1))
        return tokens + self.places


def _expanded_to_joints(common: Tensor) -> Tensor:
    return common[..., None, :].expand(*common.shape[:-1], JOINTS, -1)


def joints_within_hops(hops: int) -> list[list[int]]:
    """Return, for each Human3.6M-17 joint, the indices of the joints at most `hops` bones away, itself first."""
    neighbours = [[joint] for joint in range(JOINTS)]
    for _ in range(hops):
        for seen in neighbours:
            beside = {other for edge in H36M17.edges if not set(edge).isdisjoint(seen) for other in edge}
            seen += sorted(beside - set(seen))
    return neighbours


class JointAttention(nn.Module):
    """Softmax attention among the joints of a frame; with `skeleton` only along bones."""

    neighbours: Tensor

    def __init__(self, dim: int, heads: int, *, skeleton: bool) -> None:
        super().__init__()
        if heads < 1 or dim % heads:
            raise ValueError(f"dim must be a multiple of heads, got dim {dim} and {heads} heads")
        self.heads = heads
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        neighbours = torch.tensor([[joint in seen for joint in range(JOINTS)] for seen in joints_within_hops(1)])
        self.register_buffer("neighbours", neighbours, persistent=False)
        self.skeleton = skeleton

    def forward(self, x_BTJC: Tensor) -> Tensor:
        frames = x_BTJC.flatten(0, 1)
        q, k, v = (
            project(frames).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.neighbours if self.skeleton else None)
        y_BTJC: Tensor = self.out_proj(y.transpose(1, 2).flatten(2)).unflatten(0, x_BTJC.shape[:2])
        return y_BTJC


class SpatialBlock(nn.Module):
    """Attention among the joints of a frame and a feed-forward layer, each with a residual connection."""

    def __init__(self, config: LifterConfig) -> None:
        super().__init__()
        self.spatial = JointAttention(config.dim, config.heads, skeleton=config.skeleton_mask)
        self.ffn = FeedForward(config.dim, config.expansion)
        self.residuals = nn.ModuleList(Residual(config) for _ in range(2))

    def forward(self, x_BTJC: Tensor) -> Tensor:
        x_BTJC = self.residuals[0](x_BTJC, self.spatial)
        return cast(Tensor, self.residuals[1](x_BTJC, self.ffn))


class HierarchicalEmbedding(nn.Module):
    """Embedding of features (..., F), streaming (..., 2 F + 1), as frame tokens (..., D) by attention among joints."""

    # The tokens h of detected joints are summed with weights softmax(tanh(W h + b) . c), where W, b and c are learned.
    # The frame token is 0 if no joint is detected.

    def __init__(self, config: LifterConfig) -> None:
        super().__init__()
        self.joints = JointEmbedding(config)
        self.blocks = nn.ModuleList(SpatialBlock(config) for _ in range(config.depth // 2))
        self.hidden, self.score = nn.Linear(config.dim, config.dim), nn.Linear(config.dim, 1, bias=False)
        for module in (*self.blocks.modules(), self.hidden, self.score):
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, features: Tensor) -> Tensor:
        features_BTF = features if features.ndim == 3 else features[:, None]
        x_BTJC = self.joints(features_BTF)
        for block in self.blocks:
            x_BTJC = block(x_BTJC)
        frames = features_BTF.split(FEATURES, dim=-1)
        seen = [frame[..., 3 * JOINTS : 4 * JOINTS] > 0 for frame in frames if frame.shape[-1] == FEATURES]
        seen_BTJ = torch.stack(seen).any(dim=0)
        x_BTD = summary(self.score(torch.tanh(self.hidden(x_BTJC))), x_BTJC, seen_BTJ)
        return x_BTD if features.ndim == 3 else x_BTD[:, 0]


class JointBlock(nn.Module):
    """Block for joint tokens: residual attention among joints, over time per joint, and a feed-forward layer."""

    # If the configuration sets `joint_hops`, a single attention over time and neighbouring joints replaces the two.

    def __init__(self, config: LifterConfig, attention: Attention) -> None:
        super().__init__()
        combined = config.joint_hops > 0
        self.spatial = None if combined else JointAttention(config.dim, config.heads, skeleton=config.skeleton_mask)
        self.attention = attention
        self.ffn = FeedForward(config.dim, config.expansion)
        self.residuals = nn.ModuleList(Residual(config) for _ in range(2 if combined else 3))

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """Apply the block to joint tokens (B, T, J, C) of width C, for `context` with their times."""
        each = _repeated_per_joint(context)

        def over_time(x_BTJC: Tensor) -> Tensor:
            y = self.attention(x_BTJC.transpose(1, 2).flatten(0, 1), each)
            return cast(Tensor, y.unflatten(0, (-1, JOINTS)).transpose(1, 2))

        return self._mixed(x, over_time)

    def _mixed(self, x: Tensor, over_time: Callable[[Tensor], Tensor]) -> Tensor:
        branches = [over_time, self.ffn] if self.spatial is None else [self.spatial, over_time, self.ffn]
        for residual, branch in zip(self.residuals, branches, strict=True):
            x = residual(x, branch)
        return x

    @property
    def cache_fields(self) -> tuple[str, ...]:
        return self.attention.cache_fields

    def init_cache(self, batch: int, *, device: torch.device | str, dtype: torch.dtype) -> Cache:
        """Return an empty cache for `batch` streams; its tensors are (batch, J, ...) each for J joints."""
        parts = self.attention.init_cache(batch * JOINTS, device=device, dtype=dtype)
        return tuple(part.unflatten(0, (batch, JOINTS)) for part in parts)

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        self.attention.begin_step(step, generator)

    def step(self, x: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        """Process the tokens (B, 1, J, C) of one frame as `forward` would; return their output and the new cache."""
        following: list[Cache] = []

        def over_time(x_B1JC: Tensor) -> Tensor:
            before = tuple(part.flatten(0, 1) for part in cache)
            y, after = self.attention.step(x_B1JC.transpose(1, 2).flatten(0, 1), _repeated_per_joint(context), before)
            following.append(tuple(part.unflatten(0, (-1, JOINTS)) for part in after))
            return cast(Tensor, y.unflatten(0, (-1, JOINTS)).transpose(1, 2))

        return self._mixed(x, over_time), following[0]


class DualBlock(nn.Module):
    """Block with two streams: joints then time, and time then joints, weighted for each token by a softmax."""

    cache_fields: tuple[str, ...] = ()

    def __init__(self, config: LifterConfig, layers: Sequence[Attention]) -> None:
        super().__init__()
        self.spatial = nn.ModuleList(SpatialBlock(config) for _ in layers)
        self.temporal = nn.ModuleList(Block(config, layer) for layer in layers)
        self.fusion = nn.Linear(2 * config.dim, 2)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        """Apply the block to joint tokens (B, T, J, C) of width C, for `context` with their times."""
        each = _repeated_per_joint(context)

        def over_time(block: nn.Module, x_BTJC: Tensor) -> Tensor:
            y: Tensor = block(x_BTJC.transpose(1, 2).flatten(0, 1), each)
            return cast(Tensor, y.unflatten(0, (-1, JOINTS)).transpose(1, 2))

        streams = (
            over_time(self.temporal[0], self.spatial[0](x)),
            cast(Tensor, self.spatial[1](over_time(self.temporal[1], x))),
        )
        weights: Tensor = self.fusion(torch.cat(streams, dim=-1)).softmax(dim=-1)
        return weights[..., :1] * streams[0] + weights[..., 1:] * streams[1]

    @property
    def attention(self) -> Attention:
        """Attention over time of the first stream, whose capabilities are those of both."""
        return cast(Block, self.temporal[0]).attention

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        for block in self.temporal:
            cast(Block, block).begin_step(step, generator)

    def init_cache(self, batch: int, *, device: torch.device | str, dtype: torch.dtype) -> Cache:
        raise NotImplementedError("tokens: dual is offline")

    def step(self, x: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        raise NotImplementedError("tokens: dual is offline")


def _repeated_per_joint(context: Context) -> Context:
    """Return the context repeated for each joint. The joints become part of the batch axis."""

    def repeated(part: Tensor | None) -> Tensor | None:
        return None if part is None else part[:, None].expand(-1, JOINTS, *part.shape[1:]).flatten(0, 1)

    cos, sin = repeated(context.cos), repeated(context.sin)
    assert cos is not None
    assert sin is not None
    return Context(cos, sin, repeated(context.valid), repeated(context.times))


class JointHead(nn.Module):
    """Output layer from tokens (..., J, C) to network outputs (..., OUTPUTS), in the order that `decode` expects."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.of_joint, self.of_body = PreciseLinear(dim, 5), PreciseLinear(dim, 1)
        for linear in (self.of_joint, self.of_body):
            nn.init.normal_(linear.weight, std=0.01 / dim**0.5)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        corrected = self.of_joint(x)
        corrections, depths, trust, sigma = corrected.split([2, 1, 1, 1], dim=-1)
        size = self.of_body(x.mean(dim=-2))
        assert PELVIS == 0  # the pelvis has no sigma
        outputs = torch.cat((size, depths[..., 0], trust[..., 0], corrections.flatten(-2), sigma[..., 1:, 0]), dim=-1)
        assert outputs.shape[-1] == OUTPUTS
        return outputs
