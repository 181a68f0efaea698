"""Attention with a learned span per head, in seconds (Sukhbaatar et al., 2019).

Axes: B batch, H head, T time, S key, A key of a band, K feature of one head.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention.base import Cache, Capabilities, Context, KVCache, TimedCache
from pose.lifting.attention.softmax import SoftmaxAttention, masked_softmax
from pose.training.attention.layouts import Band

# initial z as a fraction of the longest span. The authors use 0, where only longer spans have a gradient.
INITIAL_SPAN_FRACTION = 0.25
MAX_FRAMES = 100_000
# Longest sequence, in multiples of a band's keys, for which all pairs are computed; blocks are faster in longer ones.
MAX_DENSE_RATIO = 2


class AdaptiveSpanAttention(SoftmaxAttention):
    """Softmax attention whose weights are multiplied by a learned mask and renormalised.

    The mask for a key x seconds from the query is m(x) = clamp((z S - x) / R + 1, 0, 1), with a learned z per head.

    Args:
        span: Longest span S, s; default 4.
        ramp: Width R of the mask's linear ramp, s; default 0.5. A head with z = 0 still reaches this far.
        cost: Penalty in the loss per second of mean span; default 0.001.
        rate: Highest supported frame rate, frames/s; default 60. It limits attention to `rate` times (longest
            learned span + R) frames. The limit applies to whole sequences and bounds the cache of a stream.
    """

    capabilities = Capabilities(padding=True, causal=True, streaming=True, relative_time=True, cost="O(T S D)")
    cache_fields = TimedCache._fields

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        causal: bool = False,
        span: float = 4.0,
        ramp: float = 0.5,
        cost: float = 1e-3,
        rate: int = 60,
    ) -> None:
        super().__init__(dim, heads, causal=causal)
        if not (0 < span < math.inf and 0 < ramp < math.inf and 0 <= cost < math.inf) or rate < 1:
            raise ValueError(
                "span and ramp must be above 0 s, cost at least 0 and rate at least 1, "
                f"got {span}, {ramp}, {cost} and {rate}"
            )
        if (span + ramp) * rate > MAX_FRAMES:
            raise ValueError(f"span and ramp at this rate are {(span + ramp) * rate:.0f} frames; maximum: {MAX_FRAMES}")
        self.window = None
        self.max_span_s, self.ramp, self.cost, self.rate = float(span), float(ramp), float(cost), rate
        self.share = nn.Parameter(torch.full((heads,), INITIAL_SPAN_FRACTION))  # z

    @property
    def spans(self) -> Tensor:
        """Time (H,) in s from the query up to which each head gives keys their full weight."""
        return self.max_span_s * self.share.detach().clamp(0, 1)

    @property
    def reach(self) -> Tensor:
        """Number of frames, a scalar int64, from the query to the farthest key that any head can see."""
        return ((self.spans.max() + self.ramp) * self.rate).floor().long()

    def begin_step(self, step: int, generator: torch.Generator) -> None:
        with torch.no_grad():
            self.share.clamp_(0, 1)

    def penalty(self) -> Tensor:
        return self.cost * self.max_span_s * self.share.mean()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, context: Context) -> Tensor:
        length = q.shape[2]
        if not (torch.compiler.is_compiling() or torch.jit.is_tracing()):
            band = Band.of(int(self.reach), self.causal)
            if length > MAX_DENSE_RATIO * (band.before + band.size + band.after):
                return self.banded(q, k, v, context, band)
        distance_s, seen = self._dense(length, context)
        if not torch.is_grad_enabled():  # the fused kernel has no gradient for terms added to the scores
            return F.scaled_dot_product_attention(q, k, v, attn_mask=self._log_mask(distance_s, seen).to(q.dtype))
        return self._weights(q @ k.mT, distance_s, seen).to(v.dtype) @ v

    def weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        q, k, _ = self.project(x_BTD, context)
        return self._weights(q @ k.mT, *self._dense(x_BTD.shape[1], context))

    def banded(self, q: Tensor, k: Tensor, v: Tensor, context: Context, band: Band) -> Tensor:
        """Compute the heads' outputs (B, H, T, K) from nearby keys only, with time and memory linear in T."""
        length = q.shape[2]
        key_TA = band.keys(length, q.device)
        in_sequence = (key_TA >= 0) & (key_TA < length)
        key_TA = key_TA.clamp(0, length - 1)
        query_T1 = torch.arange(length, device=q.device)[:, None]
        seen = in_sequence & self._in_reach(query_T1 - band.keys(length, q.device))
        if context.valid is not None:
            seen = seen & (context.valid[:, key_TA] | (query_T1 == key_TA))[:, None]
        distance_B1TA = (context.seconds[:, :, None] - context.seconds[:, key_TA]).abs()[:, None]
        if not torch.is_grad_enabled():
            return band.attended(q, k, v, self._log_mask(distance_B1TA, seen).to(q.dtype))
        return band.summed(self._weights(band.scores(q, k), distance_B1TA, seen).to(v.dtype), v)

    def _dense(self, length: int, context: Context) -> tuple[Tensor, Tensor]:
        """Return the seconds between all pairs of frames, (B, 1, T, T), and whether each query sees each key."""
        seconds = context.seconds
        distance_s = context.shared_mask(
            "seconds apart", lambda: (seconds[:, :, None] - seconds[:, None, :]).abs()[:, None]
        )
        assert distance_s is not None
        frame = torch.arange(length, device=seconds.device)
        seen = self._in_reach(frame[:, None] - frame)
        if context.valid is not None:
            seen = seen & (context.valid[:, None, None, :] | (frame[:, None] == frame))
        return distance_s, seen

    def _in_reach(self, age: Tensor) -> Tensor:
        """Return whether keys that are `age` frames old are within reach of the query."""
        within = age.abs() <= self.reach
        return within & (age >= 0) if self.causal else within

    def _weights(self, products: Tensor, distance_s: Tensor, seen: Tensor) -> Tensor:
        """Compute the attention weights from the products q . k and the seconds between keys and queries."""
        ramp = self._span_mask(distance_s)
        inside = ramp > 0
        scores = products / math.sqrt(self.head_dim) + ramp.where(inside, 1).log()
        return masked_softmax(scores, seen & inside)

    def _log_mask(self, distance_s: Tensor, seen: Tensor) -> Tensor:
        """Return ln m, which is added to the scores; -inf for keys that are not seen."""
        # The published product of mask and softmax, divided by its sum, equals the softmax of e + ln m.
        return self._span_mask(distance_s).log().masked_fill(~seen, -torch.inf)

    def _span_mask(self, distance_s: Tensor) -> Tensor:
        """Compute the mask m, (B, H, .., ..)."""
        share_H11 = self.share[:, None, None]
        return ((share_H11 * self.max_span_s - distance_s.to(share_H11.dtype)) / self.ramp + 1).clamp(0, 1)

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> Cache:
        slots = int(self.reach) + 1
        return TimedCache.of(KVCache.empty(batch, self.heads, slots, self.head_dim, device, dtype))

    def mix_step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        q, k, v = self.project(x_B1D, context)
        before = TimedCache(*cache)
        now_B1, kept = before.frames[:, None], before.push(k, v, context.seconds, context.valid)
        seen_BS = (kept.position >= 0) & self._in_reach(now_B1 - kept.position)
        distance_BS = (context.seconds - kept.times).abs()
        weights = self._weights(q @ kept.keys.mT, distance_BS[:, None, None], seen_BS[:, None, None])
        y_B1D = self.out_proj(self.merge(weights.to(v.dtype) @ kept.values))
        return y_B1D, kept
