"""Linformer (Wang et al., 2020): keys and values are projected along time to a fixed length."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention.base import Attention, Capabilities, Context, Option

Sharing = Literal["none", "headwise", "kv", "layer"]


class LinformerAttention(Attention):
    """softmax(q (E k)^T / sqrt(K)) F v, with E, F of shape (R, max_length) and R = max_length / compression.

    Shorter sequences use the first columns. Columns belong to frame numbers, not to times, so the output depends
    on where the sequence starts. Each output depends on all frames, so there is no causal form.

    As in the authors' code, E is applied to the tokens before the key and value projections, and the biases are added
    afterwards.

    Args:
        max_length: Longest sequence, frames; default 243.
        compression: Ratio of max_length to R; default 4.
        sharing: "none": each head has its own E and F. "headwise" (default): all heads of a layer share one E and one
            F. "kv": in addition, E = F. "layer": in addition, all layers share this matrix.
    """

    capabilities = Capabilities(
        padding=True, causal=False, streaming=False, relative_time=False, max_length=243, cost="O(T R D)"
    )

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        causal: bool = False,
        max_length: int = 243,
        compression: int = 4,
        sharing: Sharing = "headwise",
    ) -> None:
        super().__init__(dim, heads, causal=causal)
        if sharing not in get_args(Sharing):
            raise ValueError(f"sharing must be one of {', '.join(get_args(Sharing))}, got {sharing!r}")
        if not 1 <= compression <= max_length:
            raise ValueError(f"compression must be from 1 to max_length ({max_length}), got {compression}")
        self.capabilities = replace(self.capabilities, max_length=max_length)
        self.sharing = sharing
        rank = max_length // compression
        shape = (heads, rank, max_length) if sharing == "none" else (rank, max_length)
        self.key_rows = nn.Parameter(torch.empty(shape))
        self.value_rows = self.key_rows if sharing in ("kv", "layer") else nn.Parameter(torch.empty(shape))
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)
        bound = (3 / (max_length + rank)) ** 0.5  # Xavier with a gain of 1 / sqrt(2), separately for each head
        for rows in (self.key_rows, self.value_rows):
            nn.init.uniform_(rows, -bound, bound)

    @classmethod
    def build_layers(cls, depth: int, dim: int, heads: int, **options: Option) -> list[Attention]:
        build: Callable[..., LinformerAttention] = cls
        layers = [build(dim, heads, **options) for _ in range(depth)]
        for layer in layers:
            if layer.sharing == "layer":
                layer.key_rows = layer.value_rows = layers[0].key_rows
        return list(layers)

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        q_BHTK = self.split(self.q_proj(x_BTD))
        k_BHRK = self._compress(x_BTD, self.key_rows, self.k_proj)
        v_BHRK = self._compress(x_BTD, self.value_rows, self.v_proj)
        y_BTD: Tensor = self.out_proj(self.merge(F.scaled_dot_product_attention(q_BHTK, k_BHRK, v_BHRK)))
        return y_BTD

    def _compress(self, x_BTD: Tensor, rows: Tensor, linear: nn.Linear) -> Tensor:
        """Compress the projected tokens along time to (B, H, R, K): rows (x W) + bias."""
        # If the heads share the rows, the result equals linear(rows x), which is cheaper.
        rows = rows[..., : x_BTD.shape[1]]
        if self.sharing != "none":
            return self.split(linear(rows @ x_BTD))
        projected_BHTK = self.split(F.linear(x_BTD, linear.weight))
        return rows @ projected_BHTK + linear.bias.view(self.heads, 1, self.head_dim)
