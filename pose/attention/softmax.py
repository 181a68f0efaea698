"""Scaled dot-product attention (Vaswani et al., 2017) with rotary time, and the window patterns built on it."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.attention.base import Attention, Cache, Capabilities, Context, KVCache, rotate

DEFAULT_MEMORY = 1024


@dataclass(frozen=True, slots=True)
class Window:
    """Which frames a query sees, as a pure function of two frame numbers.

    span: frames seen before the query, itself included, and, unless causal, as many after it. dilation: the step from
    one of them to the next. pinned: the first frames of the sequence see all others and are seen by all (in the causal
    form they are seen by all later ones).
    """

    span: int
    causal: bool
    dilation: int = 1
    pinned: int = 0

    @property
    def reach(self) -> int:
        """How many frames lie from the farthest frame seen to the query, both included."""
        return (self.span - 1) * self.dilation + 1

    def allows(self, query: Tensor, key: Tensor) -> Tensor:
        """Whether frame number `query` sees frame number `key`; broadcasts."""
        age = query - key
        seen = (age.abs() < self.reach) & (age % self.dilation == 0)
        if self.pinned:
            seen = seen | (key < self.pinned) | (query < self.pinned)
        return seen & (age >= 0) if self.causal else seen

    def is_triangle(self, length: int) -> bool:
        """Whether the mask of so many frames is the plain causal one, for which there are faster kernels."""
        return self.causal and self.dilation == 1 and length <= self.span

    def mask(self, length: int, valid_BT: Tensor | None, device: torch.device) -> Tensor:
        """(T, T), or (B, 1, T, T) with `valid_BT`: True where query (row) sees key (column). Nobody sees a frame that
        is not valid except itself, so that no row is empty."""
        return self.mask_rows(slice(length), length, valid_BT, device)

    def mask_rows(self, rows: slice, length: int, valid_BT: Tensor | None, device: torch.device) -> Tensor:
        """Some rows of `mask`."""
        frame = torch.arange(length, device=device)
        query = frame[rows, None]
        allowed = self.allows(query, frame)
        return allowed if valid_BT is None else allowed & (valid_BT[:, None, None, :] | (query == frame))


class SoftmaxAttention(Attention):
    """softmax(q k^T / sqrt(K)) v per head, with queries and keys rotated by their time in seconds.

    memory: causal form only: how many frames a query sees, itself included. It bounds the cache of a stream, and the
    whole sequence is masked alike, so both give the same.
    """

    capabilities = Capabilities(padding=True, causal=True, streaming=True, relative_time=True, cost="O(T^2 D)")
    cache_fields = KVCache._fields

    def __init__(self, dim: int, heads: int, *, causal: bool = False, memory: int | None = None) -> None:
        super().__init__(dim, heads, causal=causal)
        if memory is not None and not causal:
            raise ValueError("memory bounds what a causal attention sees; without causal=True there is no bound to set")
        if memory is not None and memory < 1:
            raise ValueError(f"memory must be at least 1 frame, got {memory}")
        self.window: Window | None = Window(memory or DEFAULT_MEMORY, causal=True) if causal else None
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)

    def project(self, x_BTD: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries, rotated keys and values, each (B, H, T, K)."""
        q_BHTK = rotate(self.split(self.q_proj(x_BTD)), context)
        k_BHTK = rotate(self.split(self.k_proj(x_BTD)), context)
        return q_BHTK, k_BHTK, self.split(self.v_proj(x_BTD))

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        y_BTD: Tensor = self.out_proj(self.merge(self.attend(*self.project(x_BTD, context), context)))
        return y_BTD

    def attend(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        """The answer of every head, all (B, H, T, K)."""
        length = q.shape[2]
        if context.valid is None and self.window is not None and self.window.is_triangle(length):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mask = context.shared_mask(self.window, lambda: self._mask(length, context.valid, q.device))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        q, k, _ = self.project(x_BTD, context)
        scores = q @ k.mT / math.sqrt(self.head_dim)
        mask = self._mask(x_BTD.shape[1], context.valid, x_BTD.device)
        return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(dim=-1)

    def _mask(self, length: int, valid_BT: Tensor | None, device: torch.device) -> Tensor | None:
        if self.window is not None:
            return self.window.mask(length, valid_BT, device)
        if valid_BT is None:
            return None
        nobody_B1 = ~valid_BT.any(dim=1, keepdim=True)
        return (valid_BT | nobody_B1)[:, None, None, :]  # a sequence of no valid frame sees zeros, not NaN

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> KVCache:
        assert self.window is not None
        return KVCache.empty(batch, self.heads, self.window.pinned + self.window.reach, self.head_dim, device, dtype)

    def mix_step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        assert self.window is not None
        q, k, v = self.project(x_B1D, context)
        kept = KVCache(*cache)
        now_B1 = kept.frames[:, None]
        kept = kept.push(k, v, context.valid, self.window.pinned)
        seen_BS = (kept.position >= 0) & self.window.allows(now_B1, kept.position)
        if context.valid is not None:
            seen_BS = seen_BS | ~context.valid  # a missing frame's answer is dropped: any will do, but not NaN
        y_BH1K = F.scaled_dot_product_attention(q, kept.keys, kept.values, attn_mask=seen_BS[:, None, None, :])
        return self.out_proj(self.merge(y_BH1K)), kept
