"""Attention with separate weights for every feature.

Axes: B batch, H head, T query, S key, K feature of one head, P feature that is compared.
"""

import torch
from torch import Tensor, nn

from pose.lifting.attention.base import Attention, Cache, Capabilities, Context, KVCache
from pose.lifting.attention.softmax import DEFAULT_MEMORY, Window
from pose.training.attention.distributions import Compared, Distribution
from pose.training.attention.scores import Additive, query_block_size


class FeatureScores(Additive):
    """W tanh(W_q q + W_k k + b): one score per feature; the time term is the same for all features."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.out = nn.Parameter(torch.empty(heads, head_dim, head_dim))
        nn.init.normal_(self.out, std=head_dim**-0.5)

    def compare(self, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        """Compute the scores (B, H, T, K, S)."""
        (q, turned), (k, phases) = q_BHTP.chunk(2, dim=-1), k_BHSP.chunk(2, dim=-1)
        hidden = torch.tanh(q[..., :, None, :] + k[..., None, :, :])
        return (hidden @ self.out[:, None]).mT + (turned @ phases.mT)[..., None, :]


class MultiDimensionalAttention(Attention):
    """y_tk = sum_s softmax_s(W tanh(W_q q_t + W_k k_s + b))_k v_sk, for each feature k (Shen et al., 2018)."""

    # The scores have no output bias, because softmax would cancel it. Training needs O(T^2 D) memory; inference
    # processes blocks of queries in O(T D). `memory` frames, including the query, are visible in the causal form.

    capabilities = Capabilities(padding=True, causal=True, streaming=True, relative_time=True, cost="O(T^2 D K)")
    cache_fields = KVCache._fields

    def __init__(self, dim: int, heads: int, *, causal: bool = False, memory: int | None = None) -> None:
        super().__init__(dim, heads, causal=causal)
        if memory is not None and not causal:
            raise ValueError("memory: only for causal attention; set causal=True")
        if memory is not None and memory < 1:
            raise ValueError(f"memory must be at least 1 frame, got {memory}")
        self.window = Window(memory or DEFAULT_MEMORY, causal=True) if causal else None
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.score, self.distribution = FeatureScores(heads, self.head_dim), Distribution(heads)

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        window = self.window or Window(x_BTD.shape[1], causal=False)
        seen = window.mask(x_BTD.shape[1], context.valid, x_BTD.device)
        q, k, v = self._project(x_BTD, context)
        return self._answer(q, k, v, seen, Compared(q, k, context.seconds, context.seconds))

    def _project(self, x_BTD: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]:
        q = self.score.queries(self.split(self.q_proj(x_BTD)), context)
        k = self.score.keys(self.split(self.k_proj(x_BTD)), context)
        return q, k, self.split(self.v_proj(x_BTD))

    def _answer(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, compared: Compared) -> Tensor:
        size = query_block_size(k.shape[2])
        y_BHTK = torch.empty_like(q[..., : self.head_dim], dtype=v.dtype)  # avoids fragmentation of memory
        for first in range(0, q.shape[2], size):
            some = slice(first, first + size)
            rows = seen[..., some, None, :]
            shares_BHTKS = self.distribution(self.score.compare(q[:, :, some], k), rows, compared)
            y_BHTK[:, :, some] = torch.einsum("bhtks,bhsk->bhtk", shares_BHTKS.to(v.dtype), v)
        y_BTD: Tensor = self.out_proj(self.merge(y_BHTK))
        return y_BTD

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> KVCache:
        assert self.window is not None
        slots, width = self.window.reach, self.score.width
        return KVCache.empty(batch, self.heads, slots, width, device, dtype, value_dim=self.head_dim)

    def mix_step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        assert self.window is not None
        kept = KVCache(*cache)
        now_B1 = kept.frames[:, None]
        q, k, v = self._project(x_B1D, context)
        kept = kept.push(k, v, context.valid)
        seen_BS = (kept.position >= 0) & self.window.allows(now_B1, kept.position)
        compared = Compared(q, kept.keys, now_B1, kept.position)
        return self._answer(q, kept.keys, kept.values, seen_BS[:, None, None, :], compared), kept
