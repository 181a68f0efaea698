"""Scaled dot-product attention (Vaswani et al., 2017) with rotary time, and the window patterns built on it."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention.base import Attention, Cache, Capabilities, Context, KVCache, rotate

DEFAULT_MEMORY = 1024
DEFAULT_WINDOW = 27  # visible frames of sliding windows


class Pattern(ABC):
    """Base of visibility patterns: which frames a query sees, as a pure function of two frame numbers."""

    __slots__ = ()
    causal: bool  # whether each frame attends only to itself and earlier frames
    pinned: int  # number of first frames that a stream always keeps

    @property
    @abstractmethod
    def reach(self) -> int:
        """Frames from the earliest that a query always sees to the query, both included, without global tokens."""

    @abstractmethod
    def allows(self, query: Tensor, key: Tensor) -> Tensor:
        """Return whether queries see keys, bool, given broadcast frame numbers; heads on the third last axis."""

    def is_triangular(self, length: int) -> bool:
        """Return whether the mask for this length is lower triangular, for which faster kernels exist."""
        return False

    def mask(self, length: int, valid_BT: Tensor | None, device: torch.device) -> Tensor:
        """Build the mask, (T, T), or (B, 1, T, T) with `valid_BT`: True where the query (row) sees the key (column)."""
        # Invalid frames are seen only by themselves, so that no row is empty. If heads differ, the axis before T has
        # size H.
        return self.mask_rows(slice(length), length, valid_BT, device)

    def mask_rows(self, rows: slice, length: int, valid_BT: Tensor | None, device: torch.device) -> Tensor:
        """Build the rows of `mask` for the queries in the slice `rows`; the other arguments are those of `mask`."""
        frame = torch.arange(length, device=device)
        query = frame[rows, None]
        allowed = self.allows(query, frame)
        return allowed if valid_BT is None else allowed & (valid_BT[:, None, None, :] | (query == frame))


@dataclass(frozen=True, slots=True)
class Window(Pattern):
    """Visibility of the last `span` frames up to the query and, unless causal, the `span` - 1 frames after it."""

    span: int  # number of visible frames up to and including the query
    causal: bool  # whether each frame attends only to itself and earlier frames
    dilation: int = 1  # distance between visible frames, in frames
    pinned: int = 0  # number of first frames that see all others and are seen by all (causal: by all later ones)

    @property
    def reach(self) -> int:
        """Number of frames from the farthest visible frame to the query, both included; see `Pattern.reach`."""
        return (self.span - 1) * self.dilation + 1

    def allows(self, query: Tensor, key: Tensor) -> Tensor:
        """Return whether queries see keys, as bool, given their frame numbers; see `Pattern.allows`."""
        age = query - key
        seen = (age.abs() < self.reach) & (age % self.dilation == 0)
        if self.pinned:
            seen = seen | (key < self.pinned) | (query < self.pinned)
        return seen & (age >= 0) if self.causal else seen

    def is_triangular(self, length: int) -> bool:
        """Return whether the mask of `length` frames is lower triangular; see `Pattern.is_triangular`."""
        return self.causal and self.dilation == 1 and length <= self.span


class SoftmaxAttention(Attention):
    """softmax(q k^T / sqrt(K)) v per head, with queries and keys rotated by their time in seconds.

    Args:
        memory: Number of visible frames, including the query; default 1024. For the causal form only. It bounds the
            cache of a stream. Whole sequences are masked accordingly, so that both give the same output.
    """

    capabilities = Capabilities(padding=True, causal=True, streaming=True, relative_time=True, cost="O(T^2 D)")
    cache_fields: tuple[str, ...] = KVCache._fields
    window: Pattern | None

    def __init__(self, dim: int, heads: int, *, causal: bool = False, memory: int | None = None) -> None:
        super().__init__(dim, heads, causal=causal)
        if memory is not None and not causal:
            raise ValueError("memory: only for causal attention; set causal=True")
        if memory is not None and memory < 1:
            raise ValueError(f"memory must be at least 1 frame, got {memory}")
        self.window = Window(memory or DEFAULT_MEMORY, causal=True) if causal else None
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)

    def project(self, x_BTD: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        """Compute queries and keys with rotary position encoding, and values; each (B, H, T, K) for H heads."""
        q_BHTK = rotate(self.split(self.q_proj(x_BTD)), context)
        k_BHTK = rotate(self.split(self.k_proj(x_BTD)), context)
        return q_BHTK, k_BHTK, self.split(self.v_proj(x_BTD))

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        y_BTD: Tensor = self.out_proj(self.merge(self.attend(*self.project(x_BTD, context), context)))
        return y_BTD

    def attend(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        """Compute the output of every head, (B, H, T, K) like the queries, keys and values."""
        length = q.shape[2]
        if context.valid is None and self.window is not None and self.window.is_triangular(length):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mask = context.shared_mask(self.window, lambda: self._mask(length, context.valid, q.device))
        return self.summed(q, k, v, mask)

    def summed(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Compute softmax(q k^T / sqrt(K)) v over the keys where `mask`, broadcast to (B, H, T, S), is True or None."""
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        q, k, _ = self.project(x_BTD, context)
        scores = q @ k.mT / math.sqrt(self.head_dim)
        mask = self._mask(x_BTD.shape[1], context.valid, x_BTD.device)
        return scores.softmax(dim=-1) if mask is None else masked_softmax(scores, mask)

    def _mask(self, length: int, valid_BT: Tensor | None, device: torch.device) -> Tensor | None:
        if self.window is not None:
            return self.window.mask(length, valid_BT, device)
        if valid_BT is None:
            return None
        nobody_B1 = ~valid_BT.any(dim=1, keepdim=True)
        return (valid_BT | nobody_B1)[:, None, None, :]  # sequences without valid frames give zeros, not NaN

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> Cache:
        assert self.window is not None
        return KVCache.empty(batch, self.heads, self.window.pinned + self.window.reach, self.head_dim, device, dtype)

    @property
    def is_windowed_softmax(self) -> bool:
        """Whether a streaming step is plain softmax over one `Window` (required by
        `pose.lifting.step.WindowedCore`)."""
        return type(self.window) is Window

    def mix_step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        kept, y_BH1K = self.attend_step(x_B1D, context, KVCache(*cache))
        return self.out_proj(self.merge(y_BH1K)), kept

    def attend_step(self, x_B1D: Tensor, context: Context, before: KVCache) -> tuple[KVCache, Tensor]:
        """Process the next frame; return the new cache, and the output of every head, (B, H, 1, K)."""
        kept, q, seen = self.push(x_B1D, context, before)
        return kept, self.summed(q, kept.keys, kept.values, seen)

    def weights_step(self, x_B1D: Tensor, context: Context, before: KVCache) -> tuple[KVCache, Tensor]:
        """Process the next frame; return the new cache, and the attention weights of its S slots, (B, H, 1, S)."""
        kept, q, seen = self.push(x_B1D, context, before)
        return kept, masked_softmax(q @ kept.keys.mT / math.sqrt(self.head_dim), seen)

    def push(self, x_B1D: Tensor, context: Context, before: KVCache) -> tuple[KVCache, Tensor, Tensor]:
        """Add the next frame; return the cache, its query (B, H, 1, K), and which slots it sees (B, 1 or H, 1, S)."""
        assert self.window is not None
        q, k, v = self.project(x_B1D, context)
        kept = before.push(k, v, context.valid, self.window.pinned)
        seen = self._visible_slots(before.frames, kept.position)
        if context.valid is not None:
            # The output of a missing frame is discarded, but must not be NaN
            seen = seen | ~context.valid[:, None, None]
        return kept, q, seen

    def _visible_slots(self, now_B: Tensor, position_BS: Tensor) -> Tensor:
        """Return which cached frames the newest frame sees, (B, 1 or H, 1, S)."""
        assert self.window is not None
        position = position_BS[:, None, None]
        return (position >= 0) & self.window.allows(now_B[:, None, None, None], position)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the softmax over the last axis where `mask` is True, and 0 elsewhere. Rows without True are all 0."""
    some = mask.any(dim=-1, keepdim=True)
    return scores.masked_fill(~mask & some, -torch.inf).softmax(dim=-1).where(mask, 0)


class CrossAttention(nn.Module):
    """Softmax cross-attention with rotary time (Vaswani et al., 2017; Su et al., 2021), without a causal form."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        if heads < 1 or dim % heads or dim // heads % 2:
            raise ValueError(f"dim must be an even multiple of heads, got dim {dim} and {heads} heads")
        self.heads, self.head_dim = heads, dim // heads
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def remember(self, memory_BSD: Tensor, context: Context) -> tuple[Tensor, Tensor]:
        """Compute keys and values (B, H, S, K) of the attended sequence, for several calls of `forward`."""
        return rotate(self._split(self.k_proj(memory_BSD)), context), self._split(self.v_proj(memory_BSD))

    def forward(
        self, x_BTD: Tensor, context: Context, remembered: tuple[Tensor, Tensor], valid_BS: Tensor | None = None
    ) -> Tensor:
        """Attend to a remembered sequence; return (B, T, D), 0 if it has no valid tokens."""
        # The content of invalid tokens, NaN included, has no effect.
        keys, values = remembered
        q_BHTK = rotate(self._split(self.q_proj(x_BTD)), context)
        if valid_BS is None:
            return self._merge(F.scaled_dot_product_attention(q_BHTK, keys, values))
        seen_B11 = valid_BS.any(dim=1)[:, None, None]
        mask = (valid_BS | ~seen_B11[..., 0])[:, None, None, :]
        invalid = ~valid_BS[:, None, :, None]
        y_BHTK = F.scaled_dot_product_attention(
            q_BHTK, keys.masked_fill(invalid, 0), values.masked_fill(invalid, 0), attn_mask=mask
        )
        return self._merge(y_BHTK).where(seen_B11, 0)

    def _merge(self, y_BHTK: Tensor) -> Tensor:
        y_BTD: Tensor = self.out_proj(y_BHTK.transpose(1, 2).flatten(2))
        return y_BTD

    def _split(self, x_BTD: Tensor) -> Tensor:
        x_BTHK: Tensor = x_BTD.unflatten(-1, (self.heads, self.head_dim))
        return x_BTHK.transpose(1, 2)
