"""Layouts of visible keys for sparse mechanisms.

The products are dense, and time and memory are linear in the number of visible keys.

Axes: B batch, H head, T time, K feature of one head, A key whose score with a query is computed, N block, C frame of a
block.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

SMALLEST_BLOCK = 32


class Layout(Protocol):
    """Interface of layouts. A layout defines the A keys for which each query's scores are computed."""

    def keys(self, length: int, device: torch.device) -> Tensor:
        """Return the frame numbers of each query's A keys, (T, A) or (1, A); some may lie outside the sequence."""
        ...

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Compute the dot products (B, H, T, A) of each query with its A keys, from queries and keys (B, H, T, K)."""
        ...

    def summed(self, weights: Tensor, v: Tensor) -> Tensor:
        """Sum the values v (B, H, T, K) with weights (B, H, T, A) for each query's A keys; returns (B, H, T, K)."""
        ...


@dataclass(frozen=True, slots=True)
class Band:
    """Layout in blocks of `size` queries, which see their block, `before` frames before and `after` frames after it."""

    size: int  # number of frames in a block
    before: int  # number of frames before the block
    after: int  # number of frames after the block

    @classmethod
    def of(cls, reach: int, causal: bool) -> "Band":
        """Create the layout for queries that see `reach` frames before them and, unless causal, as many after."""
        return cls(max(SMALLEST_BLOCK, reach), reach, 0 if causal else reach)

    def keys(self, length: int, device: torch.device) -> Tensor:
        """Return the frame numbers (T, A) of each query's A keys in T = `length` frames; some may lie outside them."""
        start_T1 = (torch.arange(length, device=device) // self.size * self.size)[:, None]
        return start_T1 - self.before + torch.arange(self.before + self.size + self.after, device=device)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Compute the dot products (B, H, T, A) of each query with its A keys, from queries and keys (B, H, T, K)."""
        return (self._blocks(q) @ self._bands(k).mT).flatten(2, 3)[:, :, : q.shape[2]]

    def summed(self, weights: Tensor, v: Tensor) -> Tensor:
        """Sum the values v (B, H, T, K) with weights (B, H, T, A) for each query's A keys; returns (B, H, T, K)."""
        return (self._blocks(weights) @ self._bands(v)).flatten(2, 3)[:, :, : v.shape[2]]

    def attended(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """Compute softmax(q k^T / sqrt(K)) v with the fused kernel; `mask` is (B or 1, H or 1, T, A), bool or added."""
        # A frame may hold several keys of K features side by side; the mask then has an entry for each of the A keys.
        batch, _, length, width = q.shape
        mask_BHTA = F.pad(mask, (0, 0, 0, -length % self.size), value=mask.dtype == torch.bool)
        mask_BHNCA = mask_BHTA.expand(batch, -1, -1, -1).unflatten(2, (-1, self.size))
        keys, values = (self._bands(x).unflatten(-1, (-1, width)).flatten(3, 4) for x in (k, v))
        queries, keys, values, mask_XHCA = (
            x.transpose(1, 2).flatten(0, 1) for x in (self._blocks(q), keys, values, mask_BHNCA)
        )  # X: the blocks of all sequences; heads may share a mask
        y_XHCK = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask_XHCA)
        y_BHTK: Tensor = y_XHCK.unflatten(0, (batch, -1)).transpose(1, 2).flatten(2, 3)
        return y_BHTK[:, :, :length]

    def _blocks(self, x_BHTK: Tensor) -> Tensor:
        padded = F.pad(x_BHTK, (0, 0, 0, -x_BHTK.shape[2] % self.size))
        blocks: Tensor = padded.unflatten(2, (-1, self.size))
        return blocks

    def _bands(self, x_BHTK: Tensor) -> Tensor:
        padded = F.pad(x_BHTK, (0, 0, self.before, -x_BHTK.shape[2] % self.size + self.after))
        bands: Tensor = padded.unfold(2, self.before + self.size + self.after, self.size).mT
        return bands


@dataclass(frozen=True, slots=True)
class StridedKeys:
    """Layout in which each query sees the frames at multiples of `stride` from it."""

    stride: int

    def keys(self, length: int, device: torch.device) -> Tensor:
        """Return the frame numbers (T, A) of each query's A keys in T = `length` frames; some may lie outside them."""
        multiples = torch.arange(0, length, self.stride, device=device)
        return (torch.arange(length, device=device) % self.stride)[:, None] + multiples

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Compute the dot products (B, H, T, A) of each query with its A keys, from queries and keys (B, H, T, K)."""
        return (self._by_phase(q) @ self._by_phase(k).mT).transpose(2, 3).flatten(2, 3)[:, :, : q.shape[2]]

    def summed(self, weights: Tensor, v: Tensor) -> Tensor:
        """Sum the values v (B, H, T, K) with weights (B, H, T, A) for each query's A keys; returns (B, H, T, K)."""
        return (self._by_phase(weights) @ self._by_phase(v)).transpose(2, 3).flatten(2, 3)[:, :, : v.shape[2]]

    def _by_phase(self, x_BHTK: Tensor) -> Tensor:
        """Reshape (B, H, T, K) to (B, H, C, N, K), so that frames `stride` apart lie side by side."""
        padded = F.pad(x_BHTK, (0, 0, 0, -x_BHTK.shape[2] % self.stride))
        phases: Tensor = padded.unflatten(2, (-1, self.stride)).transpose(2, 3)
        return phases


@dataclass(frozen=True, slots=True)
class Summaries:
    """Layout in which each query sees the last `count` frames of every block of `stride` frames."""

    stride: int
    count: int

    def keys(self, length: int, device: torch.device) -> Tensor:
        """Return the frame numbers (T, A) of each query's A keys in T = `length` frames; some may lie outside them."""
        ends = torch.arange(self.stride, length + self.stride, self.stride, device=device)[:, None]
        frames = (ends - self.count + torch.arange(self.count, device=device)).flatten()
        return frames.expand(length, -1)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Compute the dot products (B, H, T, A) of each query with its A keys, from queries and keys (B, H, T, K)."""
        return q @ self._block_ends(k).mT

    def summed(self, weights: Tensor, v: Tensor) -> Tensor:
        """Sum the values v (B, H, T, K) with weights (B, H, T, A) for each query's A keys; returns (B, H, T, K)."""
        return weights @ self._block_ends(v)

    def _block_ends(self, x_BHTK: Tensor) -> Tensor:
        padded = F.pad(x_BHTK, (0, 0, 0, -x_BHTK.shape[2] % self.stride))
        ends: Tensor = padded.unflatten(2, (-1, self.stride))[:, :, :, self.stride - self.count :].flatten(2, 3)
        return ends
