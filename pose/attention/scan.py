"""Cumulative weighted sums: linear attention that is causal, stable and has a state of constant size.

For each frame t: sum over i <= t of exp(w_i) (q_t . k_i) v_i, divided by the same sum without v_i. Only differences of
the w matter. They are taken against the largest so far, never against one of a later frame: that is what keeps it
causal, and no exponential overflows.

Axes: B batch, H head, T time, M feature of the kernel, K feature of a value, C frame of a chunk.
"""

from typing import NamedTuple

import torch
from torch import Tensor

CHUNK = 64


class ScanState(NamedTuple):
    """All that later frames need of the earlier ones.

    sums: (B, H, M, K), sum of exp(w_i - peak) k_i v_i. norms: (B, H, M, 1), the same without v_i. peak: (B, H), the
    largest w so far.
    """

    sums: Tensor
    norms: Tensor
    peak: Tensor

    @classmethod
    def empty(
        cls, batch: int, heads: int, features: int, size: int, device: torch.device | str, dtype: torch.dtype
    ) -> "ScanState":
        dtype = torch.promote_types(dtype, torch.float32)  # long sums of half precision numbers stop growing
        lowest = torch.finfo(dtype).min / 2  # finite: the difference of two infinities is not a number
        return cls(
            torch.zeros(batch, heads, features, size, device=device, dtype=dtype),
            torch.zeros(batch, heads, features, 1, device=device, dtype=dtype),
            torch.full((batch, heads), lowest, device=device, dtype=dtype),
        )


class Terms(NamedTuple):
    """What is summed. q, k: (B, H, T, M), of positive products. v: (B, H, T, K). weight: (B, H, T), -inf leaves the
    frame out. q_value, k_value: what replaces q and k in the sum with v."""

    q: Tensor
    k: Tensor
    v: Tensor
    weight: Tensor
    q_value: Tensor
    k_value: Tensor

    def quotient(self) -> Tensor:
        """Over all frames, later ones too: (B, H, T, K); 0 if all are left out."""
        weight_BHT = self.weight
        lowest = torch.finfo(weight_BHT.dtype).min / 2
        with torch.autocast(weight_BHT.device.type, enabled=False):
            peak_BH1 = weight_BHT.detach().amax(dim=-1, keepdim=True).clamp(min=lowest)  # cancels: no gradient
            gain_BHT1 = (weight_BHT - peak_BH1).exp()[..., None]
            sums = self.q_value @ ((self.k_value * gain_BHT1).mT @ self.v)
            return sums / _positive(self.q @ (self.k * gain_BHT1).sum(dim=2)[..., None])

    def scan(self, state: ScanState) -> tuple[Tensor, ScanState]:
        """Over the frames up to each and those that `state` stands for: (B, H, T, K), and the state after the last.

        In chunks, so that time and memory are O(T (C + M) K).
        """
        with torch.autocast(state.sums.device.type, enabled=False):
            terms = (term.to(state.sums.dtype).split(CHUNK, dim=2) for term in self)
            answers = []
            for chunk in zip(*terms, strict=True):
                answer, state = Terms(*chunk)._scan_chunk(state)
                answers.append(answer)
            return torch.cat(answers, dim=2), state

    def _scan_chunk(self, state: ScanState) -> tuple[Tensor, ScanState]:
        q, k, v, weight, q_value, k_value = self
        peak_BHC = torch.maximum(weight.detach().cummax(dim=-1).values, state.peak[..., None])  # cancels: no gradient
        later_CC = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool, device=q.device).triu(1)
        gain_BHCC = (weight[:, :, None, :] - peak_BHC[..., None]).masked_fill(later_CC, -torch.inf).exp()
        fade_BHC1 = (state.peak[..., None] - peak_BHC).exp()[..., None]
        sums = (q_value @ k_value.mT * gain_BHCC) @ v + fade_BHC1 * (q_value @ state.sums)
        norms = (q @ k.mT * gain_BHCC).sum(dim=-1, keepdim=True) + fade_BHC1 * (q @ state.norms)
        gain_BHC1, fade_BH11 = gain_BHCC[:, :, -1, :, None], fade_BHC1[:, :, -1:]
        state = ScanState(
            (k_value * gain_BHC1).mT @ v + fade_BH11 * state.sums,
            (k * gain_BHC1).sum(dim=2)[..., None] + fade_BH11 * state.norms,
            peak_BHC[..., -1],
        )
        return sums / _positive(norms), state


def _positive(x: Tensor) -> Tensor:
    return x.clamp(min=torch.finfo(x.dtype).tiny)
