"""Cumulative weighted sums: stable causal linear attention with a state of constant size.

The output of frame t is the sum over i <= t of exp(w_i) (q_t . k_i) v_i, divided by the same sum without v_i. Only
differences between the w matter. They are computed relative to the largest w so far, never to that of a later frame.
This keeps the sums causal and prevents overflow.

Axes: B batch, H head, T time, M feature of the kernel, K feature of a value, N chunk, C frame of a chunk.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK = 64


class ScanState(NamedTuple):
    """Running sums over the frames so far, with weights w_i, keys k_i (M features) and values v_i (K features)."""

    sums: Tensor  # (B, H, M, K), sum of exp(w_i - peak) k_i v_i
    norms: Tensor  # (B, H, M, 1), sum of exp(w_i - peak) k_i
    peak: Tensor  # (B, H), largest w_i so far

    @classmethod
    def empty(
        cls, batch: int, heads: int, features: int, size: int, device: torch.device | str, dtype: torch.dtype
    ) -> "ScanState":
        """Create the state of `batch` streams before the first frame, M = `features`, K = `size`, at least float32."""
        dtype = torch.promote_types(dtype, torch.float32)  # long sums in half precision stop growing
        lowest = torch.finfo(dtype).min / 2  # finite: the difference of two infinities is not a number
        return cls(
            torch.zeros(batch, heads, features, size, device=device, dtype=dtype),
            torch.zeros(batch, heads, features, 1, device=device, dtype=dtype),
            torch.full((batch, heads), lowest, device=device, dtype=dtype),
        )


class ScanInputs(NamedTuple):
    """Queries, keys, values and weights of the cumulative sums; `q_value` and `k_value` replace q and k for v."""

    q: Tensor  # (B, H, T, M) queries of M kernel features; their dot products with the keys are positive
    k: Tensor  # (B, H, T, M) keys
    v: Tensor  # (B, H, T, K) values
    weight: Tensor  # (B, H, T) logarithm w of each frame's weight; -inf excludes a frame
    q_value: Tensor  # queries that replace `q` in the sum with v, the numerator
    k_value: Tensor  # keys that replace `k` in the sum with v, the numerator

    def bidirectional(self) -> Tensor:
        """Compute the output (B, H, T, K) of every frame from all frames; 0 if all frames are excluded."""
        weight_BHT = self.weight
        lowest = torch.finfo(weight_BHT.dtype).min / 2
        with torch.autocast(weight_BHT.device.type, enabled=False):
            # Cancels in the quotient, so it needs no gradient
            peak_BH1 = weight_BHT.detach().amax(dim=-1, keepdim=True).clamp(min=lowest)
            gain_BHT1 = (weight_BHT - peak_BH1).exp()[..., None]
            sums = self.q_value @ ((self.k_value * gain_BHT1).mT @ self.v)
            return sums / _positive(self.q @ (self.k * gain_BHT1).sum(dim=2)[..., None])

    def scan(self, state: ScanState) -> tuple[Tensor, ScanState]:
        """Compute the outputs (B, H, T, K) of frames after those summed in `state`, and the new state."""
        # Pairs within a chunk are computed directly, and earlier chunks through their sums. The cost is O(T (C + M) K),
        # with C frames in a chunk.
        length = self.weight.shape[-1]
        with torch.autocast(state.sums.device.type, enabled=False):
            q, k, v, weight, q_value, k_value = self._chunks(state.sums.dtype)
            # Detached: the peaks cancel in the quotient, so they have no gradient.
            peak_BHT = weight.detach().flatten(2).cummax(dim=-1).values.maximum(state.peak[..., None])
            peak_BHNC = peak_BHT.view_as(weight)
            end_BHN = peak_BHNC[..., -1]
            start_BHN = torch.cat((state.peak[..., None], end_BHN[..., :-1]), dim=-1)
            later_CC = torch.ones(2 * weight.shape[-1:], dtype=torch.bool, device=q.device).triu(1)
            gain_BHNCC = (weight[..., None, :] - peak_BHNC[..., None]).masked_fill(later_CC, -torch.inf).exp()
            to_end_BHNC1 = gain_BHNCC[..., -1, :, None]
            fade_BHN11 = (start_BHN - end_BHN).exp()[..., None, None]
            sums_before, sums = _accumulate((k_value * to_end_BHNC1).mT @ v, fade_BHN11, state.sums)
            norms_before, norms = _accumulate((k * to_end_BHNC1).sum(3)[..., None], fade_BHN11, state.norms)
            from_start_BHNC1 = (start_BHN[..., None] - peak_BHNC).exp()[..., None]
            numerator = (q_value @ k_value.mT * gain_BHNCC) @ v + from_start_BHNC1 * (q_value @ sums_before)
            denominator = (q @ k.mT * gain_BHNCC).sum(-1, keepdim=True) + from_start_BHNC1 * (q @ norms_before)
            y_BHTK = (numerator / _positive(denominator)).flatten(2, 3)[:, :, :length]
            return y_BHTK, ScanState(sums, norms, end_BHN[..., -1])

    def _chunks(self, dtype: torch.dtype) -> Iterator[Tensor]:
        """Yield each term in chunks of time, (B, H, N, C, ...). The last chunk is padded with excluded frames."""
        length = self.weight.shape[-1]
        size = min(CHUNK, length)
        fill = -length % size
        for part in self:
            fill_value = -torch.inf if part is self.weight else 0.0
            margin = (0, fill) if part is self.weight else (0, 0, 0, fill)
            yield F.pad(part.to(dtype), margin, value=fill_value).unflatten(2, (-1, size))


def _accumulate(sums_BHNMK: Tensor, fade_BHN11: Tensor, start_BHMK: Tensor) -> tuple[Tensor, Tensor]:
    """Return the decayed sum of all earlier chunks for each chunk, and the sum of all chunks."""
    before = [start_BHMK]
    for chunk, fade in zip(sums_BHNMK.unbind(2), fade_BHN11.unbind(2), strict=True):
        before.append(chunk + fade * before[-1])
    return torch.stack(before[:-1], dim=2), before[-1]


def _positive(x: Tensor) -> Tensor:
    return x.clamp(min=torch.finfo(x.dtype).tiny)
