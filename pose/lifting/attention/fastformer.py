"""Fastformer (Wu et al., 2021): additive attention through one global query and one global key per head."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention.base import Attention, Cache, Capabilities, Context
from pose.lifting.attention.scan import ScanInputs, ScanState

HALF_MAX = torch.finfo(torch.float16).max


class FastformerAttention(Attention):
    """Additive attention with one global query and one global key per head."""

    # Per head: a = softmax_t(A q / sqrt(K)), Q = sum_t a_t q_t, p_t = k_t Q (elementwise), b = softmax_t(B p /
    # sqrt(K)), G = sum_t b_t p_t; the output is W_o(W_p(G q_t) + q_t). As in the authors' PyTorch code, A and B read
    # the features of all heads, the second pooling is of p, not of k, and the query is also the value (there is no
    # v_proj). W_o is part of the block in their code. The mechanism does not encode time; the model adds the time to
    # the tokens.

    capabilities = Capabilities(padding=True, causal=False, streaming=False, relative_time=False, cost="O(T D)")

    def __init__(self, dim: int, heads: int, *, causal: bool = False) -> None:
        super().__init__(dim, heads, causal=causal)
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.query_score = nn.Linear(dim, heads)
        self.key_score = nn.Linear(dim, heads)
        self.transform = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        q_BTD, k_BTD = self._queries_and_keys(x_BTD)
        p_BTD = k_BTD * self._pool(q_BTD, self.query_score, context.valid)
        pooled_B1D = self._pool(p_BTD, self.key_score, context.valid)
        return self._output(pooled_B1D * q_BTD, q_BTD, x_BTD.dtype)

    def _queries_and_keys(self, x_BTD: Tensor) -> tuple[Tensor, Tensor]:
        # float32 for float16, in which products of three features overflow
        x_BTD = x_BTD.float() if x_BTD.dtype == torch.float16 else x_BTD
        return _linear(self.q_proj, x_BTD), _linear(self.k_proj, x_BTD)

    def _output(self, mixed_BTD: Tensor, q_BTD: Tensor, dtype: torch.dtype) -> Tensor:
        y_BTD = _linear(self.out_proj, _linear(self.transform, mixed_BTD) + q_BTD)
        return y_BTD.clamp(-HALF_MAX, HALF_MAX).half() if dtype == torch.float16 else y_BTD

    def _pool(self, x_BTD: Tensor, score: nn.Linear, valid_BT: Tensor | None) -> Tensor:
        """Average the tokens over time, (B, 1, D), weighted per head by the softmax of the scores."""
        score_BHT = _linear(score, x_BTD).mT * self.head_dim**-0.5
        if valid_BT is not None:
            someone_B1 = valid_BT.any(dim=1, keepdim=True)  # without valid frames the average of zeros is correct
            score_BHT = score_BHT.masked_fill((~valid_BT & someone_B1)[:, None], -torch.inf)
        weight_BH1T = score_BHT.softmax(dim=-1)[:, :, None]
        return self.merge(weight_BH1T @ self.split(x_BTD))


class FastformerCache(NamedTuple):
    """Cache of a stream: the fields of two `ScanState`, that of the mean query and that of the mean key."""

    query_sums: Tensor
    query_norms: Tensor
    query_peak: Tensor
    key_sums: Tensor
    key_norms: Tensor
    key_peak: Tensor


class CumulativeFastformerAttention(FastformerAttention):
    """Causal variant of Fastformer: the global query and the global key of a frame are those of the frames so far."""

    # The published mechanism computes both once over all frames, so this variant is a recurrence, not a masked form of
    # it.

    capabilities = Capabilities(
        padding=True, bidirectional=False, causal=True, streaming=True, relative_time=False, cost="O(T D)"
    )
    cache_fields = FastformerCache._fields

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        start = self.empty_cache(len(x_BTD), x_BTD.device, x_BTD.dtype)
        return self.mix_step(x_BTD, context, start)[0]

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> FastformerCache:
        state = ScanState.empty(batch, self.heads, 1, self.head_dim, device, dtype)
        return FastformerCache(*state, *state)

    def mix_step(self, x_BTD: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        q_BTD, k_BTD = self.q_proj(x_BTD), self.k_proj(x_BTD)
        queries, keys = ScanState(*cache[:3]), ScanState(*cache[3:])
        global_BTD, queries = self._pool_so_far(q_BTD, self.query_score, context.valid, queries)
        pooled_BTD, keys = self._pool_so_far(k_BTD * global_BTD, self.key_score, context.valid, keys)
        return self._output(pooled_BTD * q_BTD, q_BTD, x_BTD.dtype), FastformerCache(*queries, *keys)

    def _pool_so_far(
        self, x_BTD: Tensor, score: nn.Linear, valid_BT: Tensor | None, state: ScanState
    ) -> tuple[Tensor, ScanState]:
        score_BHT = _linear(score, x_BTD).mT * self.head_dim**-0.5
        if valid_BT is not None:
            score_BHT = score_BHT.masked_fill(~valid_BT[:, None], -torch.inf)
        alike_BHT1 = torch.ones_like(score_BHT)[..., None]
        scan_inputs = ScanInputs(alike_BHT1, alike_BHT1, self.split(x_BTD), score_BHT, alike_BHT1, alike_BHT1)
        pooled_BHTK, state = scan_inputs.scan(state)
        return self.merge(pooled_BHTK).to(x_BTD.dtype), state


def _linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """Apply a layer in the precision of its input."""
    if layer.weight.dtype != torch.float16 or x.dtype == torch.float16:
        y: Tensor = layer(x)
        return y
    return F.linear(x, layer.weight.to(x.dtype), layer.bias.to(x.dtype))
