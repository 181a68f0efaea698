"""Sparse distributions: sparsemax and entmax, which give most keys a weight of exactly 0.

Axes: B batch, H head, T query, S key.
"""

import torch
from torch import Tensor, nn

from pose.training.attention.distributions.base import Compared, Distribution, below_the_largest


class Entmax(Distribution):
    """alpha-entmax (Peters et al., 2019): weights max(0, (alpha - 1) e - tau)^(1 / (alpha - 1)) of scores e.

    The threshold tau is chosen so that the weights sum to 1. Keys far below the best have a weight of exactly 0. alpha
    1 is softmax, 2 is sparsemax (Martins and Astudillo, 2016). Each head learns its own alpha between 1 and 2,
    initially 1.5.

    The sum is convex and decreasing in tau. Newton's method therefore converges from any point below the root, without
    sorting.
    """

    STEPS = 9  # enough for an error of rounding size with thousands of keys; equal scores at alpha 1.01 take 12

    def __init__(self, heads: int) -> None:
        super().__init__(heads)
        self.sharpness = nn.Parameter(torch.zeros(heads))

    def alpha(self, scores: Tensor) -> Tensor:
        """Return alpha of each head, in the dtype of `scores` and a shape that broadcasts to theirs, (B, H, T, S)."""
        return 1 + torch.sigmoid(self.sharpness).clamp(0.01, 1)[:, None, None].to(scores.dtype)

    def power(self, u: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        """Return max(0, u)^(1 / (alpha - 1)) and its derivative by u, (B, H, T, S), both 0 for u <= 0."""
        positive = u > 0
        base = u.where(positive, 1)
        power = base ** (1 / (alpha - 1))
        return power.where(positive, 0), (power / (base * (alpha - 1))).where(positive, 0)

    def sums(self, u: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        """Sum both results of `power` over the keys, the last axis; (B, H, T, 1) each. May overwrite `u`."""
        weights, slopes = self.power(u, alpha)
        return weights.sum(dim=-1, keepdim=True), slopes.sum(dim=-1, keepdim=True)

    @torch.no_grad()
    def root(self, z: Tensor, seen: Tensor, alpha: Tensor) -> Tensor:
        """Solve for the threshold tau (B, H, T, 1) at which weights of `z`, at most 0 and -2 if not seen, sum to 1."""
        count = seen.sum(dim=-1, keepdim=True).clamp_min(1).to(z.dtype)
        mean = z.where(seen, 0).sum(dim=-1, keepdim=True) / count
        tau = (mean - count ** (1 - alpha)).clamp_min(-1)  # a lower bound of the root, as powers are convex
        unrolled = torch.compiler.is_compiling() or torch.jit.is_tracing()
        for _ in range(self.STEPS):
            rise = _rise(*self.sums(z - tau, alpha))
            # Converged queries stay, so that results do not depend on the batch
            rise = rise.where(rise > 8 * torch.finfo(z.dtype).eps, 0)
            tau = tau + rise
            if not unrolled and not rise.any():
                break
        return tau

    def forward(self, scores_BHTS: Tensor, seen: Tensor, compared: Compared) -> Tensor:
        alpha = self.alpha(scores_BHTS)
        z = (below_the_largest(scores_BHTS, seen) * (alpha - 1)).where(seen, -2)  # tau is never below -1
        tau = self.root(z, seen, alpha)
        # One more step with gradients enabled: its gradient is that of the root.
        weights, slopes = self.power(z - tau, alpha)
        rise = _rise(weights.sum(dim=-1, keepdim=True), slopes.detach().sum(dim=-1, keepdim=True))
        return self.power(z - (tau + rise), alpha)[0].where(seen, 0)


class Entmax15(Entmax):
    """alpha-entmax with alpha fixed at 1.5."""

    ALPHA = 1.5

    def __init__(self, heads: int) -> None:
        Distribution.__init__(self, heads)

    def alpha(self, scores: Tensor) -> Tensor:
        return scores.new_tensor(self.ALPHA)

    def power(self, u: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        positive = u.relu()
        return positive * positive, 2 * positive

    def sums(self, u: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        u.relu_()
        return torch.linalg.vector_norm(u, dim=-1, keepdim=True).square(), 2 * u.sum(dim=-1, keepdim=True)


class Sparsemax(Entmax15):
    """alpha-entmax with alpha fixed at 2: the Euclidean projection of the scores onto the simplex."""

    ALPHA = 2.0

    def power(self, u: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        return u.relu(), (u > 0).to(u.dtype)

    def sums(self, u: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
        u.relu_()
        return u.sum(dim=-1, keepdim=True), u.sign_().sum(dim=-1, keepdim=True)


def _rise(total: Tensor, slope: Tensor) -> Tensor:
    """Compute the Newton step of tau, (B, H, T, 1)."""
    return (total - 1) / slope.clamp_min(1e-6)
