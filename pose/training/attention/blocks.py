"""Attention in blocks of time; all queries of a block see the same keys (Image Transformer, Parmar et al., 2018).

Axes: B batch, H head, T time, A key of a block's memory, K feature of one head.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from pose.lifting.attention.base import Capabilities, Context
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
