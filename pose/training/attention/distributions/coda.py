"""Compositional de-attention, whose weights may be negative.

Axes: B batch, H head, T query, S key, P feature that is compared.
"""

import math

import torch
from torch import Tensor

from pose.training.attention.distributions.base import Compared, Distribution


class Coda(Distribution):
    """Weights tanh(e) 2 sigmoid(-|q - k| / sqrt(K)) between -1 and 1 (Tay et al., 2019). Memory is O(T^2 K)."""

    # |q - k| is the sum of the distances of rotated feature pairs. The paper sums over single features, which would
    # depend on a rotation that both share.

    EPS = 1e-12  # added under the root, whose slope at 0 is infinite

    def forward(self, scores_BHTS: Tensor, seen: Tensor, compared: Compared) -> Tensor:
        even, odd = (compared.queries[..., :, None, :] - compared.keys[..., None, :, :]).chunk(2, dim=-1)
        apart = (even * even + odd * odd + self.EPS).sqrt().sum(dim=-1)
        gate = 2 * torch.sigmoid(-apart / math.sqrt(compared.queries.shape[-1]))
        return (torch.tanh(scores_BHTS) * gate).where(seen, 0)
