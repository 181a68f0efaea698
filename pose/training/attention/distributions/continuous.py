"""Continuous attention: a density over time instead of a weight per frame, for unevenly spaced frames.

Axes: B batch, H head, T query, S key, N function of the basis, G node of the quadrature.
"""

import numpy as np
import torch
from torch import Tensor

from pose.training.attention.distributions.base import Compared, Distribution

_nodes, _shares = np.polynomial.legendre.leggauss(40)
_NODES: list[float] = _nodes.tolist()
_NODE_SHARES: list[float] = (0.75 * (1 - _nodes**2) * _shares).tolist()  # quadrature weights times the parabola


class Continuous(Distribution):
    """A normal density over the visible time span (Martins et al., 2020). O(T^2 N) memory."""

    # Softmax weights a_s of keys at times t_s give the mean mu = sum a_s t_s and the variance sum a_s (t_s - mu)^2.
    # Values become V(t) = B psi(t), by ridge regression on N Gaussian basis functions psi over the visible span. The
    # output is B E[psi(t)]: a sum of values with weights E[psi]^T (F F^T + l I)^-1 F for F_ns = psi_n(t_s). Weights may
    # be negative, and sum to about 1.

    BASIS = 8
    RIDGE = 1e-2
    LEAST_SPREAD = 1e-2  # smallest standard deviation, as a fraction of the visible span

    def forward(self, scores_BHTS: Tensor, seen: Tensor, compared: Compared) -> Tensor:
        with torch.autocast(scores_BHTS.device.type, enabled=False):
            return self._weights(scores_BHTS, seen, compared).to(scores_BHTS.dtype)

    def _weights(self, scores_BHTS: Tensor, seen: Tensor, compared: Compared) -> Tensor:
        precise = torch.promote_types(scores_BHTS.dtype, torch.float32)
        share_BHTS = super().forward(scores_BHTS.to(precise), seen, compared)
        place_B1TS = _places(compared, seen).to(precise)
        mean_BHT1 = (share_BHTS * place_B1TS).sum(dim=-1, keepdim=True)
        variance_BHT1 = (share_BHTS * (place_B1TS - mean_BHT1).square()).sum(dim=-1, keepdim=True)
        bump_B1TNS = self._bumps(place_B1TS[..., None, :], axis=-2).where(seen[..., None, :], 0)
        gram_B1TNN = bump_B1TNS @ bump_B1TNS.mT + self.RIDGE * torch.eye(self.BASIS, dtype=precise, device=seen.device)
        regression_B1TNS = solve_positive(gram_B1TNN, bump_B1TNS)
        expected_BHTN = self.expected(mean_BHT1, variance_BHT1 + self.LEAST_SPREAD**2)
        return torch.einsum("bhtn,btns->bhts", expected_BHTN, regression_B1TNS[:, 0])

    def _bumps(self, place: Tensor, axis: int) -> Tensor:
        """Compute psi_n at positions in [0, 1], along a new last axis or a broadcast axis before the last."""
        centres = torch.linspace(0, 1, self.BASIS, dtype=place.dtype, device=place.device)
        apart = (place - (centres[:, None] if axis == -2 else centres)) * (self.BASIS - 1)
        return torch.exp(-apart.square() / 2)

    def expected(self, mean_BHT1: Tensor, variance_BHT1: Tensor) -> Tensor:
        """Return the expected values (B, H, T, N) of the basis functions; times are 0 to 1 over the visible span."""
        width = 1 / (self.BASIS - 1)
        wider = (1 + variance_BHT1 / width**2).sqrt()
        centres = torch.linspace(0, 1, self.BASIS, dtype=mean_BHT1.dtype, device=mean_BHT1.device)
        return torch.exp(-((mean_BHT1 - centres) / (width * wider)).square() / 2) / wider


class ContinuousSparse(Continuous):
    """Continuous attention with a truncated parabola as the density, as for 2-entmax (sparsemax)."""

    def expected(self, mean_BHT1: Tensor, variance_BHT1: Tensor) -> Tensor:
        """Return the expected values (B, H, T, N) of the basis functions by Gauss-Legendre quadrature."""
        # The density is 3 (1 - (t / r)^2) / (4 r) at the distance t from the mean, for t from -r to r. Its variance is
        # r^2 / 5, so r is sqrt(5) standard deviations.
        node_G = torch.tensor(_NODES, dtype=mean_BHT1.dtype, device=mean_BHT1.device)
        share_G = torch.tensor(_NODE_SHARES, dtype=mean_BHT1.dtype, device=mean_BHT1.device)
        place_BHTG = mean_BHT1 + (5 * variance_BHT1).sqrt() * node_G
        return torch.einsum("g,bhtgn->bhtn", share_G, self._bumps(place_BHTG[..., None], axis=-1))


def _places(compared: Compared, seen: Tensor) -> Tensor:
    """Return the position (0 to 1) of each key in the visible time span of a query, (B, 1, T, S); 0 if not visible."""
    seconds_BTS = compared.key_times[:, None, :] - compared.query_times[:, :, None]
    seconds_B1TS, seen = seconds_BTS[:, None], seen.expand(len(seconds_BTS), -1, -1, -1)
    first = seconds_B1TS.masked_fill(~seen, torch.inf).amin(dim=-1, keepdim=True)
    last = seconds_B1TS.masked_fill(~seen, -torch.inf).amax(dim=-1, keepdim=True)
    length = (last - first).where(last > first, 1)
    return ((seconds_B1TS - first) / length).where(seen, 0)


def solve_positive(matrix_NN: Tensor, right_NS: Tensor) -> Tensor:
    """Compute matrix^-1 right for positive definite matrices (..., N, N) and right sides (..., N, S)."""
    # Gauss-Jordan elimination needs no pivoting for such matrices, and uses only operators that all exporters support.
    size = matrix_NN.shape[-1]
    joined = torch.cat((matrix_NN, right_NS), dim=-1)
    for i in range(size):
        row = joined[..., i : i + 1, :] / joined[..., i : i + 1, i : i + 1]
        factor = joined[..., i : i + 1].clone()
        cleared = joined - factor * row
        joined = torch.cat((cleared[..., :i, :], row, cleared[..., i + 1 :, :]), dim=-2)
    return joined[..., size:]
