"""Base class of distributions, and the distributions without parameters.

Axes: B batch, H head, T query, S key, P feature that is compared.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Compared:
    """Queries and keys, for distributions that need more than the scores."""

    queries: Tensor  # (B, H, T, P) queries of P features, as the score compares them
    keys: Tensor  # (B, H, S, P) keys of P features, as the score compares them
    query_times: Tensor  # (B, T) float64 s
    key_times: Tensor  # (B, S) float64 s


class Distribution(nn.Module):
    """Softmax from scores to weights, and the base class of other distributions; 0 where `seen` is False."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def begin_step(self, generator: torch.Generator) -> None:
        """Prepare for a training step; a random distribution samples from `generator` here."""

    def forward(self, scores_BHTS: Tensor, seen: Tensor, compared: Compared) -> Tensor:
        """Compute the weights (B, H, T, S)."""
        centred = below_the_largest(scores_BHTS, seen)
        odds = centred.exp().where(seen, 0)
        return odds / odds.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(odds.dtype).tiny)


class Sigmoid(Distribution):
    """sigmoid(e - ln n) of the scores e, with n visible keys. Weights are independent and need not sum to 1."""

    def forward(self, scores_BHTS: Tensor, seen: Tensor, compared: Compared) -> Tensor:
        seen = seen.expand_as(scores_BHTS)
        count = seen.sum(dim=-1, keepdim=True).clamp_min(1).to(scores_BHTS.dtype)
        return torch.sigmoid(scores_BHTS.where(seen, 0) - count.log()).where(seen, 0)


class Ratio(Distribution):
    """Scores divided by their sum, without softmax (Choromanski et al., 2021). The scores must not be negative."""

    def forward(self, scores_BHTS: Tensor, seen: Tensor, compared: Compared) -> Tensor:
        odds = scores_BHTS.where(seen, 0)
        return odds / odds.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(odds.dtype).tiny)


def below_the_largest(scores: Tensor, seen: Tensor) -> Tensor:
    """Subtract each query's largest visible score to prevent overflow; 0 for keys that are not seen."""
    lowest = torch.finfo(scores.dtype).min
    largest = scores.detach().masked_fill(~seen, lowest).amax(dim=-1, keepdim=True)
    return (scores - largest.where(largest > lowest, 0)).where(seen, 0)


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
