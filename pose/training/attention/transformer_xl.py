"""Transformer-XL (Dai et al., 2019): relative-time scores, and a memory of earlier segments.

Axes: B batch, H head, T time, S slot of the memory, D width, K feature of one head.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention.base import Attention, Cache, Capabilities, Context, KVCache, Option
from pose.lifting.attention.softmax import Window, masked_softmax

DEFAULT_MEMORY = 81
DEFAULT_SEGMENT = 81


class LayerInputs(NamedTuple):
    """Cache of a stream: inputs of the layer for the S remembered frames."""

    inputs: Tensor  # (B, 1, S, D) inputs of the layer. The axis of length 1 takes the place of the heads
    phases: Tensor  # (B, 1, S, K), K/2 cosines, then K/2 sines of the frames' rotary angles
    position: Tensor  # (B, S) number of the frame in each slot, from the start of its stream; -1 for an empty slot
    frames: Tensor  # (B,) number of frames processed so far


class TransformerXLAttention(Attention):
    """Softmax attention with a term for the time between frames; layers share its biases u and w.

    The scores are ((q_t + u) . k_s + (q_t + w) . W_R r(t - s)) / sqrt(K), where r(d) = [sin(omega d), cos(omega d)] of
    the seconds d between two frames. Values do not depend on time.

    In the causal form a frame sees the `memory` frames before it. The sequence is processed in segments of `segment`
    frames; no gradient flows to the cached inputs of earlier segments. A long clip is thus trained as a stream runs,
    and the outputs do not depend on the segments. In the bidirectional form all frames see each other, without
    segments.

    Args:
        memory: Number of visible frames before the query; default 81. For the causal form only.
        segment: Number of frames in a segment; default 81. For the causal form only.
    """

    capabilities = Capabilities(padding=True, causal=True, streaming=True, relative_time=True, cost="O(T (L + M) D)")
    cache_fields = LayerInputs._fields

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        causal: bool = False,
        memory: int | None = None,
        segment: int | None = None,
    ) -> None:
        super().__init__(dim, heads, causal=causal)
        if not causal and (memory is not None or segment is not None):
            raise ValueError("memory and segment: only for causal attention")
        self.memory = DEFAULT_MEMORY if memory is None else memory
        self.segment = DEFAULT_SEGMENT if segment is None else segment
        if self.memory < 1 or self.segment < 1:
            raise ValueError(f"memory and segment must be at least 1 frame, got {self.memory} and {self.segment}")
        self.window = Window(self.memory + 1, causal=True) if causal else None
        self.q_proj, self.k_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.distance_proj = nn.Linear(self.head_dim, dim, bias=False)  # W_R
        self.content_bias = nn.Parameter(torch.empty(heads, self.head_dim))  # u
        self.distance_bias = nn.Parameter(torch.empty(heads, self.head_dim))  # w
        for bias in (self.content_bias, self.distance_bias):
            nn.init.normal_(bias, std=0.02)

    @classmethod
    def build_layers(cls, depth: int, dim: int, heads: int, **options: Option) -> list[Attention]:
        layers = super().build_layers(depth, dim, heads, **options)
        first = layers[0]
        assert isinstance(first, TransformerXLAttention)
        for layer in layers[1:]:
            assert isinstance(layer, TransformerXLAttention)
            layer.content_bias, layer.distance_bias = first.content_bias, first.distance_bias
        return layers

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        if self.window is None:
            mask = None if context.valid is None else self._seen(x_BTD.shape[1], context)
            return self._attend(x_BTD, context, x_BTD, _phases(context), mask)
        return torch.cat([self._segment(x_BTD, context, *span) for span in self._spans(x_BTD.shape[1])], dim=1)

    def _spans(self, length: int) -> Iterator[tuple[int, int, int]]:
        """Yield the first remembered frame, the first frame and the end of every segment."""
        for start in range(0, length, self.segment):
            yield max(0, start - self.memory), start, min(length, start + self.segment)

    def _segment(self, x_BTD: Tensor, context: Context, first: int, start: int, stop: int) -> Tensor:
        assert self.window is not None
        known_BTD = torch.cat((x_BTD[:, first:start].detach(), x_BTD[:, start:stop]), dim=1)
        valid_BT = None if context.valid is None else context.valid[:, first:stop]
        rows = slice(start - first, stop - first)
        mask = self.window.mask_rows(rows, stop - first, valid_BT, x_BTD.device)
        own = Context(context.cos[:, start:stop], context.sin[:, start:stop])
        return self._attend(x_BTD[:, start:stop], own, known_BTD, _phases(context)[:, first:stop], mask)

    def _attend(self, x_BTD: Tensor, context: Context, known: Tensor, phases: Tensor, mask: Tensor | None) -> Tensor:
        """Attend from the frames (B, T, D) to known frames (B, S, D) with phases (B, S, K)."""
        v = self.split(self.v_proj(known))
        q, k = self._compared(x_BTD, context, known, phases)
        v = F.pad(v, (0, self.head_dim))  # the fused kernel requires equal widths
        y_BHTK = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.head_dim**-0.5)[
            ..., : self.head_dim
        ]
        y_BTD: Tensor = self.out_proj(self.merge(y_BHTK))
        return y_BTD

    def _compared(self, x_BTD: Tensor, context: Context, known: Tensor, phases: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, H, T, 2 K) and (B, H, S, 2 K) whose dot products are the scores times sqrt(K)."""
        # With [a, b] = W_R^T (q + w), the second term is sum_i a_i sin(omega_i (t - s)) + b_i cos(omega_i (t - s)). By
        # the angle-sum formulas it is the dot product of a vector at t and a vector at s.
        q = self.split(self.q_proj(x_BTD))
        k = self.split(self.k_proj(known))
        weight_HKK = self.distance_proj.weight.unflatten(0, (self.heads, self.head_dim))
        a, b = ((q + self.distance_bias[:, None].to(q.dtype)) @ weight_HKK.to(q.dtype)).chunk(2, dim=-1)
        cos, sin = context.cos[:, None], context.sin[:, None]
        turned = torch.cat((a * sin + b * cos, b * sin - a * cos), dim=-1).to(q.dtype)
        content = q + self.content_bias[:, None].to(q.dtype)
        phases_BHSK = phases[:, None].to(k.dtype).expand(-1, self.heads, -1, -1)
        return torch.cat((content, turned), dim=-1), torch.cat((k, phases_BHSK), dim=-1)

    def weights(self, x_BTD: Tensor, context: Context) -> Tensor:
        q, k = self._compared(x_BTD, context, x_BTD, _phases(context))
        return masked_softmax(q @ k.mT * self.head_dim**-0.5, self._seen(x_BTD.shape[1], context))

    def _seen(self, length: int, context: Context) -> Tensor:
        window = self.window or Window(length, causal=False)
        return window.mask(length, context.valid, context.cos.device)

    def empty_cache(self, batch: int, device: torch.device | str, dtype: torch.dtype) -> Cache:
        return LayerInputs(*KVCache.empty(batch, 1, self.memory + 1, self.dim, device, dtype, value_dim=self.head_dim))

    def mix_step(self, x_B1D: Tensor, context: Context, cache: Cache) -> tuple[Tensor, Cache]:
        kept = KVCache(*cache).push(x_B1D[:, None], _phases(context)[:, None], context.valid)
        seen = (kept.position >= 0)[:, None, None]  # all cached frames are within reach
        if context.valid is not None:
            # The output of a missing frame is discarded, but must not be NaN
            seen = seen | ~context.valid[:, None, None]
        y_B1D = self._attend(x_B1D, context, kept.keys[:, 0].to(x_B1D.dtype), kept.values[:, 0], seen)
        return y_B1D, LayerInputs(*kept)


def _phases(context: Context) -> Tensor:
    """Return the cosines and sines of the rotary angles, (B, T, K)."""
    return torch.cat((context.cos, context.sin), dim=-1)
