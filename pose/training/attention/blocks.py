"""Attention in blocks of time; all queries of a block see the same keys (Image Transformer, Parmar et al., 2018).

Axes: B batch, H head, T time, A key of a block's memory, K feature of one head.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from pose.lifting.attention.base import Attention, Cache, Capabilities, Context, KVCache
from pose.lifting.attention.softmax import Pattern, SoftmaxAttention
from pose.training.attention.layouts import Band

# Longest sequence, in multiples of a block's keys, for which all pairs are computed; blocks are faster in longer ones.
MAX_DENSE_RATIO = 2


@dataclass(frozen=True, slots=True)
class BlockPattern(Pattern):
    """Visibility in blocks of `size` frames: a query sees its block and `beyond` frames on either side."""

    # In the causal form a query sees only the part of this range up to itself: `beyond` to `beyond` + `size` - 1
    # earlier frames, depending on its position in the block.

    size: int  # number of frames in a block
    beyond: int  # number of visible frames on either side of the block
    causal: bool  # whether each frame attends only to itself and earlier frames
    pinned: int = 0  # number of first frames that a stream always keeps

    @property
    def reach(self) -> int:
        """Number of frames from the farthest visible frame to the query, both included; see `Pattern.reach`."""
        return self.size + self.beyond

    def allows(self, query: Tensor, key: Tensor) -> Tensor:
        """Return whether queries see keys, bool, given frame numbers that are broadcast."""
        start = query // self.size * self.size
        seen = (key >= start - self.beyond) & (key < start + self.size + self.beyond)
        return seen & (key <= query) if self.causal else seen

    @property
    def band(self) -> Band:
        """Layout of a block's keys: the block, `beyond` frames before and, unless causal, after it."""
        return Band(self.size, self.beyond, 0 if self.causal else self.beyond)

    def seen(self, band: Band, length: int, valid_BT: Tensor | None, device: torch.device) -> Tensor:
        """Return which keys of a band each query sees, (B or 1, 1, T, A) bool, consistent with `mask`."""
        key_TA, query_T1 = band.keys(length, device), torch.arange(length, device=device)[:, None]
        seen = (self.allows(query_T1, key_TA) & (key_TA >= 0) & (key_TA < length))[None, None]
        if valid_BT is None:
            return seen
        return seen & (valid_BT[:, key_TA.clamp(0, length - 1)] | (query_T1 == key_TA))[:, None]


class BlockAttention(SoftmaxAttention):
    """Softmax attention in blocks, with the visibility of `BlockPattern`.

    Blocks are counted from the first frame, so the output depends on where the sequence starts.

    Args:
        block: Number of frames in a block; default 27.
        beyond: Number of visible frames on either side of the block; by default the length of one block.
    """

    capabilities = Capabilities(padding=True, causal=True, streaming=True, relative_time=True, cost="O(T L D)")
    window: BlockPattern

    def __init__(
        self, dim: int, heads: int, *, causal: bool = False, block: int = 27, beyond: int | None = None
    ) -> None:
        super().__init__(dim, heads, causal=causal)
        beyond = block if beyond is None else beyond
        if block < 1 or beyond < 0:
            raise ValueError(f"block must be at least 1 frame and beyond at least 0, got {block} and {beyond}")
        self.window = BlockPattern(block, beyond, causal)

    def is_short(self, length: int) -> bool:
        """Return whether computing all pairs of frames is faster than blocks for this length."""
        return length <= MAX_DENSE_RATIO * (self.window.size + 2 * self.window.beyond)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        if self.is_short(q.shape[2]):
            return super().attend(q, k, v, context)
        return block_attention(q, k, v, self.window, context.valid)


def block_attention(q: Tensor, k: Tensor, v: Tensor, pattern: BlockPattern, valid_BT: Tensor | None) -> Tensor:
    """Compute softmax(q k^T / sqrt(K)) v of (B, H, T, K) per block, masked by `pattern.mask(T, valid_BT)`."""
    return pattern.band.attended(q, k, v, pattern.seen(pattern.band, q.shape[2], valid_BT, q.device))


class NeighbourhoodAttention(Attention):
    """`BlockAttention` over frames of J tokens each: one softmax over visible frames and neighbouring joints.

    The input is (B J, T, D), with J consecutive entries for the joints of each of B sequences. The contexts have the
    same B J entries.

    Args:
        inner: Mechanism that has the parameters and determines the visible frames.
        visible_joints: Indices of the joints that each joint sees, including itself.
    """

    neighbours: Tensor  # (J, A) visible joints of each joint, padded with itself
    is_neighbour: Tensor  # (J, A) False for padding

    def __init__(self, inner: BlockAttention, visible_joints: Sequence[Sequence[int]]) -> None:
        self.capabilities = inner.capabilities
        super().__init__(inner.dim, inner.heads, causal=inner.causal)
        if not all(joint in seen for joint, seen in enumerate(visible_joints)):
            raise ValueError("visible_joints: expected one list per joint, each with the joint itself")
        self.inner, self.cache_fields = inner, inner.cache_fields
        max_neighbours = max(len(seen) for seen in visible_joints)
        neighbours = torch.tensor(
            [[*seen, *[joint] * (max_neighbours - len(seen))] for joint, seen in enumerate(visible_joints)]
        )
        is_neighbour = torch.tensor([[slot < len(seen) for slot in range(max_neighbours)] for seen in visible_joints])
        self.register_buffer("neighbours", neighbours, persistent=False)
        self.register_buffer("is_neighbour", is_neighbour, persistent=False)

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        q, k, v = self.inner.project(x_BTD, context)
        window, length = self.inner.window, q.shape[2]
        # Exported graphs have a dynamic length, so they cannot branch on it.
        if torch.compiler.is_compiling() or self.inner.is_short(length):
            seen = window.mask(length, context.valid, q.device)
            return self._attend_all(q, k, v, seen if seen.ndim == 4 else seen[None, None])
        seen = window.seen(window.band, length, context.valid, q.device)
        y = window.band.attended(
            self._by_joint(q), self._gather_neighbours(k), self._gather_neighbours(v), self._mask(seen)
        )
        return self._output(y)

    @property
    def has_map(self) -> bool:
        return False

    def weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        raise ValueError("attention in blocks of time x joints has no map of frames")

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> Cache:
        return self.inner.empty_cache(batch, device, dtype)

    def mix_step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        kept, q, seen = self.inner.push(x_B1D, context, KVCache(*cache))
        return self._attend_all(q, *kept[:2], seen), kept

    def _attend_all(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        """Attend to all frames of k and v, (B J, H, S, K), in one softmax; `seen` is (B J or 1, 1, T, S)."""
        keys, values = (self._gather_neighbours(x).unflatten(-1, (-1, self.head_dim)).flatten(2, 3) for x in (k, v))
        y = F.scaled_dot_product_attention(self._by_joint(q), keys, values, attn_mask=self._mask(seen))
        return self._output(y)

    def _by_joint(self, x_BHTK: Tensor) -> Tensor:
        """Reshape (B J, H, T, K) to (J, B H, T, K), so that all sequences and heads of a joint share a mask."""
        x_BJHTK: Tensor = x_BHTK.unflatten(0, (-1, len(self.neighbours)))
        return x_BJHTK.transpose(0, 1).flatten(1, 2)

    def _gather_neighbours(self, x_BHTK: Tensor) -> Tensor:
        """Gather the neighbours of each joint side by side: (B J, H, T, K) to (J, B H, T, A K)."""
        x_JAXTK: Tensor = self._by_joint(x_BHTK)[self.neighbours]
        return x_JAXTK.permute(0, 2, 3, 1, 4).flatten(3)

    def _mask(self, seen: Tensor) -> Tensor:
        """Extend a mask of frames (B J or 1, 1, T, S) to the neighbours of each joint: (J, B H or 1, T, S A)."""
        if seen.shape[0] > 1:
            seen = self._by_joint(seen.expand(-1, self.heads, -1, -1))
        return (seen[..., None] & self.is_neighbour[:, None, None, None]).flatten(3)

    def _output(self, y: Tensor) -> Tensor:
        """Reshape (J, B H, T, K) to (B J, T, D)."""
        y_BHTK = y.unflatten(1, (-1, self.heads)).transpose(0, 1).flatten(0, 1)
        y_BTD: Tensor = self.inner.out_proj(self.merge(y_BHTK))
        return y_BTD
