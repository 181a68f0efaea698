"""The two-factor attention of the Sparse Transformer (Child et al., 2019): near frames, and every n-th far frame.

Axes: B batch, H head, T time, K feature of one head, A key whose score with a query is computed.
"""

import math
from dataclasses import dataclass, replace
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from pose.lifting.attention.base import Attention, Capabilities, Context, Option
from pose.lifting.attention.softmax import DEFAULT_MEMORY, Pattern, SoftmaxAttention, masked_softmax
from pose.training.attention.layouts import Band, Layout, StridedKeys, Summaries

KINDS = ("strided", "fixed")
ARRANGEMENTS = ("merged", "heads", "layers")
# Longest sequence, in multiples of the visible keys, for which all pairs are computed; blocks are faster beyond it.
MAX_DENSE_RATIO = 4


@dataclass(frozen=True, slots=True)
class SparsePattern(Pattern):
    """Visibility of near frames and a sparse selection of far frames; `near` and `far` are per head, or for all."""

    # "strided": near frames are less than `stride` away, and far frames are a multiple of `stride` away. "fixed": near
    # frames are in the query's block of `stride` frames, and far frames are the last `summary` of every block.

    kind: str  # "strided" or "fixed"
    stride: int  # distance between far frames, or length of a block, frames
    summary: int  # number of far frames at the end of each block ("fixed" only)
    causal: bool  # whether each frame attends only to itself and earlier frames
    reach: int  # number of frames from the farthest visible frame to the query, both included; causal form only
    near: tuple[bool, ...] = (True,)  # whether heads see near frames; one entry for all heads, or one per head
    far: tuple[bool, ...] = (True,)  # whether heads see far frames; one entry for all heads, or one per head
    pinned: int = 0  # number of first frames that a stream always keeps

    def allows(self, query: Tensor, key: Tensor) -> Tensor:
        """Return whether queries see keys, as bool, given their frame numbers; see `Pattern.allows`."""
        seen = self._for_heads(self.near, self.is_near(query, key)) | self._for_heads(self.far, self.is_far(query, key))
        return seen & self.in_time(query, key)

    def is_near(self, query: Tensor, key: Tensor) -> Tensor:
        """Return whether `key` is near `query` (frame numbers): less than `stride` away, or in the same block."""
        if self.kind == "fixed":
            return query // self.stride == key // self.stride
        return (query - key).abs() < self.stride

    def is_far(self, query: Tensor, key: Tensor) -> Tensor:
        """Return whether `key` is a far frame of `query`: at a multiple of `stride`, or at the end of a block."""
        if self.kind == "fixed":
            # `query >= -1` is always True; it broadcasts the result over the queries.
            return (key % self.stride >= self.stride - self.summary) & (query >= -1)
        return (query - key) % self.stride == 0

    def in_time(self, query: Tensor, key: Tensor) -> Tensor:
        """Return whether `key` is one of the last `reach` frames up to `query`; always True unless causal."""
        age = query - key
        return (age >= 0) & (age < self.reach) if self.causal else age == age

    def _for_heads(self, heads: tuple[bool, ...], seen: Tensor) -> Tensor:
        if len(heads) == 1:
            return seen if heads[0] else torch.zeros_like(seen)
        return seen & torch.tensor(heads, device=seen.device)[:, None, None]


class SparseAttention(SoftmaxAttention):
    """Softmax attention over near frames and a few far ones; two layers connect all frames.

    The output for a query that sees no frame is 0.

    Args:
        pattern: "strided" (default) or "fixed", see `SparsePattern`.
        stride: Distance between far frames ("strided") or length of a block ("fixed"), in frames; default
            16. A good value is about the square root of the sequence length.
        summary: Number of frames at the end of each block that all frames see ("fixed" only); by default a quarter of
            the block.
        arrange: "merged" (default): every head sees both near and far frames. "heads": half of the heads see near
            frames, half see far frames. "layers": odd layers (the first, third, ...) see near frames, even layers far
            frames.
        memory: Number of last frames, including the query, that can be visible; default 1024. For the causal form only.
    """

    capabilities = Capabilities(padding=True, causal=True, streaming=True, relative_time=True, cost="O(T sqrt(T) D)")
    window: SparsePattern

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        causal: bool = False,
        pattern: str = "strided",
        stride: int = 16,
        summary: int | None = None,
        arrange: str = "merged",
        memory: int | None = None,
    ) -> None:
        super().__init__(dim, heads, causal=causal, memory=memory)
        for name, value, known in (("pattern", pattern, KINDS), ("arrange", arrange, ARRANGEMENTS)):
            if value not in known:
                raise ValueError(f"sparse attention: {name} must be one of {', '.join(known)}, got {value!r}")
        if stride < 1 or (summary is not None and not 1 <= summary <= stride):
            raise ValueError(f"stride must be at least 1 and summary 1 to stride, got {stride} and {summary}")
        if summary is not None and pattern != "fixed":
            raise ValueError("summary: only for the fixed pattern")
        if memory is not None and memory < stride:
            raise ValueError(f"memory must be at least the stride, {stride} frames, got {memory}")
        summary = summary or max(1, stride // 4)
        self.window = SparsePattern(pattern, stride, summary, causal, memory or DEFAULT_MEMORY)
        if arrange == "heads":
            if heads < 2:
                raise ValueError("arrange='heads' needs at least two heads, one for near and one for far frames")
            near = tuple(head < (heads + 1) // 2 for head in range(heads))
            self.window = replace(self.window, near=near, far=tuple(not is_near for is_near in near))
        elif arrange == "layers":
            self.window = replace(self.window, far=(False,))

    @classmethod
    def build_layers(cls, depth: int, dim: int, heads: int, **options: Option) -> list[Attention]:
        layers = super().build_layers(depth, dim, heads, **options)
        if options.get("arrange") == "layers":
            for layer in layers[1::2]:
                assert isinstance(layer, SparseAttention)
                layer.window = replace(layer.window, near=(False,), far=(True,))
        return layers

    def attend(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        length, stride = q.shape[2], self.window.stride
        keys = 2 * stride + length // stride * (1 if self.window.kind == "strided" else self.window.summary)
        if length > MAX_DENSE_RATIO * keys:
            return sparse_attention(q, k, v, self.window, context.valid)
        mask = context.shared_mask(self.window, lambda: self._mask(length, context.valid, q.device))
        return self.summed(q, k, v, mask)

    def summed(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        assert mask is not None
        has_keys = mask.any(dim=-1, keepdim=True)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask | ~has_keys).where(has_keys, 0)


def sparse_attention(q: Tensor, k: Tensor, v: Tensor, pattern: SparsePattern, valid_BT: Tensor | None) -> Tensor:
    """Compute softmax(q k^T / sqrt(K)) v of (B, H, T, K) from keys visible in `pattern.mask(T, valid_BT)`."""
    if len(pattern.near) == 1:
        return _attend_all_heads(q, k, v, pattern, valid_BT)
    halves = sum(pattern.near), sum(pattern.far)  # near heads come first
    outputs = [
        _attend_all_heads(q_some, k_some, v_some, replace(pattern, near=(near,), far=(not near,)), valid_BT)
        for near, q_some, k_some, v_some in zip(
            (True, False), *(x.split(halves, dim=1) for x in (q, k, v)), strict=True
        )
    ]
    return torch.cat(outputs, dim=1)


def _attend_all_heads(q: Tensor, k: Tensor, v: Tensor, pattern: SparsePattern, valid_BT: Tensor | None) -> Tensor:
    layouts, masks = [], []
    query_T1 = torch.arange(q.shape[2], device=q.device)[:, None]
    for layout, key_mask in _layouts(pattern):
        key_TA = layout.keys(q.shape[2], q.device)
        seen = key_mask(query_T1, key_TA) & pattern.in_time(query_T1, key_TA) & (key_TA >= 0) & (key_TA < q.shape[2])
        if valid_BT is not None:
            seen = seen & (valid_BT[:, key_TA.clamp(0, q.shape[2] - 1)] | (query_T1 == key_TA))[:, None]
        layouts.append(layout)
        masks.append(seen)
    scores = torch.cat([layout.scores(q, k) for layout in layouts], dim=-1) / math.sqrt(q.shape[-1])
    weights = masked_softmax(scores, torch.cat(masks, dim=-1))
    shares = weights.split([mask.shape[-1] for mask in masks], dim=-1)
    return torch.stack([layout.summed(share, v) for layout, share in zip(layouts, shares, strict=True)]).sum(dim=0)


class KeyMask(Protocol):
    """Function that returns whether frame number `query` may attend to frame number `key`; arguments are broadcast."""

    def __call__(self, query: Tensor, key: Tensor, /) -> Tensor: ...


def _layouts(pattern: SparsePattern) -> list[tuple[Layout, KeyMask]]:
    """Return the layouts of the keys with their masks; no key appears in two of them."""
    near: Layout
    far: Layout
    if pattern.kind == "fixed":
        near, far = Band(pattern.stride, 0, 0), Summaries(pattern.stride, pattern.summary)
    else:
        reach = pattern.stride - 1
        near, far = Band.of(reach, pattern.causal), StridedKeys(pattern.stride)
    layouts: list[tuple[Layout, KeyMask]] = []
    if pattern.near[0]:
        layouts.append((near, pattern.is_near))
    if pattern.far[0]:
        taken = pattern.near[0]
        layouts.append((far, lambda t, s: pattern.is_far(t, s) & ~(pattern.is_near(t, s) & taken)))
    return layouts
