"""Sliding-window attention (Longformer, Beltagy et al., 2020), with optional dilation and global tokens.

Queries are processed in blocks, and each block is compared only with a band of nearby keys.

Axes: B batch, H head, X batch and head combined, T time, K feature of one head, N block, C query of a block, L key of a
block's band.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention.base import Cache, Capabilities, Context, KVCache, rotate
from pose.lifting.attention.softmax import DEFAULT_WINDOW, Pattern, SoftmaxAttention, Window

# Longest sequence, in multiples of a band's keys, for which all pairs are computed; blocks are faster in longer ones.
MAX_DENSE_RATIO = 2


@dataclass(frozen=True, slots=True)
class HeadWindows(Pattern):
    """Visibility pattern with one `Window` per head. The windows differ only in their dilation."""

    span: int  # number of visible frames up to and including the query; see `Window`
    causal: bool  # whether each frame attends only to itself and earlier frames
    dilations: tuple[int, ...]  # distance between visible frames, in frames, for each head
    pinned: int = 0  # number of first frames that see all others and are seen by all (causal: by all later ones)

    @property
    def reach(self) -> int:
        """Number of frames from the farthest visible frame of any head to the query, both included."""
        return (self.span - 1) * max(self.dilations) + 1

    def of(self, dilation: int) -> Window:
        """Return the window of the heads with this dilation."""
        return Window(self.span, self.causal, dilation, self.pinned)

    def allows(self, query: Tensor, key: Tensor) -> Tensor:
        """Return whether queries see keys, bool, given broadcast frame numbers; heads on the third last axis."""
        age, dilation = query - key, torch.tensor(self.dilations, device=query.device)[:, None, None]
        seen = (age.abs() <= (self.span - 1) * dilation) & (age % dilation == 0)
        if self.pinned:
            seen = seen | (key < self.pinned) | (query < self.pinned)
        return seen & (age >= 0) if self.causal else seen


class PinnedCache(NamedTuple):
    """A `KVCache` and the keys and values (B, H, G, K) of the first G frames, from their separate projections."""

    keys: Tensor
    values: Tensor
    position: Tensor
    frames: Tensor
    global_keys: Tensor
    global_values: Tensor


class LocalAttention(SoftmaxAttention):
    """Softmax attention to a window of nearby frames.

    Args:
        window: Number of visible frames up to and including the query; default 27. Unless causal, the `window` - 1
            frames after the query are also visible.
        dilation: Distance between visible frames, in frames; default 1. One number, or one per head as in "1,1,2,4".
        global_tokens: Number of first frames that see all frames and are seen by all (causal: see all earlier frames
            and are seen by all later ones); default 0. A stream keeps them in its cache.
        global_projections: "shared" (default): all frames use the same projections. "own": the outputs of the global
            frames use separate projections to queries, keys and values, as in Longformer.
    """

    capabilities = Capabilities(padding=True, causal=True, streaming=True, relative_time=True, cost="O(T W D)")
    window: Window | HeadWindows

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        causal: bool = False,
        window: int = DEFAULT_WINDOW,
        dilation: int | str = 1,
        global_tokens: int = 0,
        global_projections: str = "shared",
    ) -> None:
        super().__init__(dim, heads, causal=causal)
        dilations = _dilations(dilation, heads)
        if window < 1 or min(dilations) < 1 or global_tokens < 0:
            raise ValueError(
                "window and dilation must be at least 1 and global_tokens at least 0, "
                f"got {window}, {dilation} and {global_tokens}"
            )
        if global_projections not in ("shared", "own"):
            raise ValueError(f"global_projections must be one of shared, own, got {global_projections!r}")
        if global_projections == "own" and not global_tokens:
            raise ValueError("global_projections: own needs global tokens; set global_tokens to at least 1")
        self.window = (
            Window(window, causal, dilations[0], global_tokens)
            if len(set(dilations)) == 1
            else HeadWindows(window, causal, dilations, global_tokens)
        )
        self.own_global_projections = global_projections == "own"
        if self.own_global_projections:
            self.global_q_proj, self.global_k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
            self.global_v_proj = nn.Linear(dim, dim)
            self.cache_fields = PinnedCache._fields

    @property
    def is_windowed_softmax(self) -> bool:
        return super().is_windowed_softmax and not self.own_global_projections

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        y_BHTK = self.attend(*self.project(x_BTD, context), context)
        if self.own_global_projections:
            first = min(self.window.pinned, x_BTD.shape[1])
            q, k, v = self._global_project(x_BTD, context)
            mask = self.window.mask_rows(slice(0, first), x_BTD.shape[1], context.valid, x_BTD.device)
            y_BHTK = torch.cat((self.summed(q[:, :, :first], k, v, mask), y_BHTK[:, :, first:]), dim=2)
        y_BTD: Tensor = self.out_proj(self.merge(y_BHTK))
        return y_BTD

    def attend(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        if isinstance(self.window, HeadWindows):
            if q.shape[2] <= MAX_DENSE_RATIO * band_length(self.window.of(max(self.window.dilations))):
                return super().attend(q, k, v, context)
            return attention_by_dilation(q, k, v, self.window, context.valid)
        if q.shape[2] <= MAX_DENSE_RATIO * band_length(self.window):
            return super().attend(q, k, v, context)
        return banded_attention(q, k, v, self.window, context.valid)

    @property
    def has_map(self) -> bool:
        return not self.own_global_projections

    def weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        if self.own_global_projections:
            raise ValueError("local attention has no map with separate projections of global tokens")
        return super().weights(x_BTD, context)

    def _global_project(self, x_BTD: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        q = rotate(self.split(self.global_q_proj(x_BTD)), context)
        k = rotate(self.split(self.global_k_proj(x_BTD)), context)
        return q, k, self.split(self.global_v_proj(x_BTD))

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> Cache:
        kept = super().empty_cache(batch, device, dtype)
        if not self.own_global_projections:
            return kept
        pinned = KVCache.empty(batch, self.heads, self.window.pinned, self.head_dim, device, dtype)
        return PinnedCache(*KVCache(*kept), pinned.keys, pinned.values)

    def mix_step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        if not self.own_global_projections:
            return super().mix_step(x_B1D, context, cache)
        before = PinnedCache(*cache)
        kept, y_BH1K = self.attend_step(x_B1D, context, KVCache(*before[:4]))
        q, k, v = self._global_project(x_B1D, context)
        slot_G1 = torch.arange(self.window.pinned, device=x_B1D.device)[:, None]
        now_B111 = before.frames[:, None, None, None]
        keys = torch.where(slot_G1 == now_B111, k, before.global_keys)
        values = torch.where(slot_G1 == now_B111, v, before.global_values)
        seen = kept.position[:, None, None, : self.window.pinned] >= 0
        if context.valid is not None:
            seen = seen | ~context.valid[:, None, None]
        first = now_B111 < self.window.pinned
        y_BH1K = torch.where(first, self.summed(q, keys, values, seen | ~first), y_BH1K)
        return self.out_proj(self.merge(y_BH1K)), PinnedCache(*kept, keys, values)


def attention_by_dilation(q: Tensor, k: Tensor, v: Tensor, windows: HeadWindows, valid_BT: Tensor | None) -> Tensor:
    """Compute `banded_attention` of (B, H, T, K) separately for the heads of each dilation."""
    y_BHTK = torch.empty_like(q)
    for dilation in sorted(set(windows.dilations)):
        heads = [head for head, own in enumerate(windows.dilations) if own == dilation]
        y_BHTK[:, heads] = banded_attention(q[:, heads], k[:, heads], v[:, heads], windows.of(dilation), valid_BT)
    return y_BHTK


def _dilations(dilation: int | str, heads: int) -> tuple[int, ...]:
    """Return the dilation of each head."""
    each = str(dilation).split(",") if isinstance(dilation, str) else [str(dilation)] * heads
    if isinstance(dilation, bool) or not all(part.strip().lstrip("-").isdecimal() for part in each):
        raise ValueError(f"dilation must be a whole number, or one for each head as in 1,1,2,4, got {dilation!r}")
    if len(each) != heads:
        raise ValueError(f"dilation must be one number, or one for each of {heads} heads, got {dilation!r}")
    return tuple(int(part) for part in each)


SMALLEST_BLOCK = 32


def band_length(window: Window) -> int:
    """Return the number of keys for which `banded_attention` computes each query's scores."""
    return _block(window) + (window.reach - 1) * (1 if window.causal else 2) + window.pinned


def banded_attention(q: Tensor, k: Tensor, v: Tensor, window: Window, valid_BT: Tensor | None) -> Tensor:
    """Compute softmax(q k^T / sqrt(K)) v of (B, H, T, K), masked by `window.mask(T, valid_BT)`."""
    heads, length = q.shape[1:3]
    window = replace(window, pinned=min(window.pinned, length))
    block, before = _block(window), window.reach - 1
    blocks = -(-length // block)
    fill, after = blocks * block - length, 0 if window.causal else before
    q_XNCK = F.pad(q.flatten(0, 1), (0, 0, 0, fill)).unflatten(1, (blocks, block))
    k_XNLK, v_XNLK = (
        F.pad(x.flatten(0, 1), (0, 0, before, fill + after)).unfold(1, before + block + after, block).mT for x in (k, v)
    )
    if window.pinned:
        first = (x.flatten(0, 1)[:, None, : window.pinned].expand(-1, blocks, -1, -1) for x in (k, v))
        k_XNLK, v_XNLK = (torch.cat(pair, dim=2) for pair in zip((k_XNLK, v_XNLK), first, strict=True))
    mask = _mask(window, length, valid_BT, q.device)
    if valid_BT is not None:
        mask = mask.repeat_interleave(heads, dim=0)
    y_XNCK = F.scaled_dot_product_attention(q_XNCK, k_XNLK, v_XNLK, attn_mask=mask)
    y_BHTK: Tensor = y_XNCK.flatten(1, 2)[:, :length].unflatten(0, (-1, heads))
    if not window.pinned or window.causal:
        return y_BHTK
    pinned_mask = window.mask_rows(slice(0, window.pinned), length, valid_BT, q.device)
    y_first = F.scaled_dot_product_attention(q[:, :, : window.pinned], k, v, attn_mask=pinned_mask)
    return torch.cat((y_first, y_BHTK[:, :, window.pinned :]), dim=2)


def _block(window: Window) -> int:
    return max(SMALLEST_BLOCK, window.reach - 1)


def _mask(window: Window, length: int, valid_BT: Tensor | None, device: torch.device) -> Tensor:
    """Return which keys of its band each query sees, (1 or B, N, C, L). The pinned frames are the last keys."""
    block, before = _block(window), window.reach - 1
    start_N11 = torch.arange(0, length, block, device=device)[:, None, None]
    query_NC1 = start_N11 + torch.arange(block, device=device)[:, None]
    near_N1L = start_N11 - before + torch.arange(band_length(window) - window.pinned, device=device)
    pinned = torch.arange(window.pinned, device=device)
    near_NCL = replace(window, pinned=0).allows(query_NC1, near_N1L) & (near_N1L >= window.pinned)
    allowed_NCL = torch.cat((near_NCL, window.allows(query_NC1, pinned)), dim=-1)
    key_N1L = torch.cat((near_N1L, pinned.expand(len(start_N11), 1, -1)), dim=-1)
    there = ((key_N1L >= 0) & (key_N1L < length))[None]
    if valid_BT is not None:
        there = there & valid_BT[:, key_N1L.clamp(0, length - 1)]
    return allowed_NCL & (there | (key_N1L == query_NC1))
