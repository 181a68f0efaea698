"""From scores to weights: how a query shares its attention among the keys that it sees.

Axes: B batch, H head, T query, S key, P feature as compared.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn


class Distribution(nn.Module):
    """Softmax. seen: True where the query sees the key, broadcast to the scores; weights are 0 elsewhere, and all 0 for
    a query that sees nothing."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, scores_BHTS: Tensor, seen: Tensor, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        """Weights (B, H, T, S). q, k: what was compared, for those that look at more than the score."""
        centred = _below_the_largest(scores_BHTS, seen)
        odds = centred.exp().where(seen, 0)
        return odds / odds.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(odds.dtype).tiny)


class Sigmoid(Distribution):
    """sigmoid(e - ln n), n the number of keys seen: each key on its own merits. The weights need not sum to 1."""

    def forward(self, scores_BHTS: Tensor, seen: Tensor, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        seen = seen.expand_as(scores_BHTS)
        count = seen.sum(dim=-1, keepdim=True).clamp_min(1).to(scores_BHTS.dtype)
        return torch.sigmoid(scores_BHTS.where(seen, 0) - count.log()).where(seen, 0)


class Entmax(Distribution):
    """alpha-entmax (Peters et al., 2019): max(0, (alpha - 1) e - tau)^(1 / (alpha - 1)), tau so that they sum to 1. The
    weights of keys far below the best are exactly 0. alpha 1 would be softmax, 2 is sparsemax (Martins and Astudillo,
    2016); here each head learns its own between 1 and 2, from 1.5.

    The sum is convex in tau and falls, so Newton's method climbs to its root from any point below, without sorting.
    """

    STEPS = 9  # to rounding errors for thousands of keys; alpha 1.01 among equals takes 12

    def __init__(self, heads: int) -> None:
        super().__init__(heads)
        self.sharpness = nn.Parameter(torch.zeros(heads))

    def alpha(self, scores: Tensor) -> Tensor:
        """Broadcasts to (B, H, T, S)."""
        return 1 + torch.sigmoid(self.sharpness).clamp(0.01, 1)[:, None, None].to(scores.dtype)

    def power(self, u: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        """max(0, u)^(1 / (alpha - 1)) and its derivative; both 0, with gradients of 0, where u is not above 0."""
        positive = u > 0
        base = u.where(positive, 1)
        power = base ** (1 / (alpha - 1))
        return power.where(positive, 0), (power / (base * (alpha - 1))).where(positive, 0)

    def forward(self, scores_BHTS: Tensor, seen: Tensor, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        alpha = self.alpha(scores_BHTS)
        z = (_below_the_largest(scores_BHTS, seen) * (alpha - 1)).where(seen, -2)  # tau is never below -1
        with torch.no_grad():
            count = seen.sum(dim=-1, keepdim=True).clamp_min(1).to(z.dtype)
            mean = z.where(seen, 0).sum(dim=-1, keepdim=True) / count
            tau = (mean - count ** (1 - alpha)).clamp_min(-1)  # below the root, as powers are convex
            for _ in range(self.STEPS):
                weights, slopes = self.power(z - tau, alpha)
                tau += _newton(weights, slopes)
        # One step more, outside of no_grad: it gives tau the gradient that it has as the root.
        weights, slopes = self.power(z - tau, alpha)
        return self.power(z - (tau + _newton(weights, slopes.detach())), alpha)[0].where(seen, 0)


class Entmax15(Entmax):
    """alpha-entmax at alpha 1.5."""

    ALPHA = 1.5

    def __init__(self, heads: int) -> None:
        Distribution.__init__(self, heads)

    def alpha(self, scores: Tensor) -> Tensor:
        return scores.new_tensor(self.ALPHA)

    def power(self, u: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        positive = u.relu()
        return positive * positive, 2 * positive


class Sparsemax(Entmax15):
    """alpha-entmax at alpha 2: the Euclidean projection of the scores onto the simplex."""

    ALPHA = 2.0

    def power(self, u: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        return u.relu(), (u > 0).to(u.dtype)


def _newton(weights: Tensor, slopes: Tensor) -> Tensor:
    """How far tau has to rise, (B, H, T, 1)."""
    return (weights.sum(dim=-1, keepdim=True) - 1) / slopes.sum(dim=-1, keepdim=True).clamp_min(1e-6)


class Coda(Distribution):
    """tanh(e) 2 sigmoid(-|q - k| / sqrt(K)) (Tay et al., 2019): weights between -1 and 1, which may subtract. |q - k|
    is the sum over the rotated pairs of features of how far the two are apart, where the paper sums single features: a
    rotation that both share must not count. O(T^2 K) memory."""

    EPS = 1e-12  # under the root, whose slope at 0 is infinite

    def forward(self, scores_BHTS: Tensor, seen: Tensor, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        even, odd = (q_BHTP[..., :, None, :] - k_BHSP[..., None, :, :]).chunk(2, dim=-1)
        apart = (even * even + odd * odd + self.EPS).sqrt().sum(dim=-1)
        gate = 2 * torch.sigmoid(-apart / math.sqrt(q_BHTP.shape[-1]))
        return (torch.tanh(scores_BHTS) * gate).where(seen, 0)


DISTRIBUTIONS: dict[str, Callable[[int], Distribution]] = {
    "softmax": Distribution,
    "sigmoid": Sigmoid,
    "sparsemax": Sparsemax,
    "entmax15": Entmax15,
    "entmax": Entmax,
    "coda": Coda,
}


def _below_the_largest(scores: Tensor, seen: Tensor) -> Tensor:
    """Scores less the largest that is seen, so that no exponential overflows; at most 0 where seen."""
    lowest = torch.finfo(scores.dtype).min
    largest = scores.detach().masked_fill(~seen, lowest).amax(dim=-1, keepdim=True)
    return (scores - largest.where(largest > lowest, 0)).where(seen, 0)
