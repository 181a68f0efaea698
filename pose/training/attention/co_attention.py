"""Co-attention between two sequences, such as one person in two cameras.

Axes: B batch, T token of the first sequence, S token of the second, D feature, A hidden unit.
"""

import torch
from torch import Tensor, nn

from pose.lifting.attention.base import Attention, Capabilities, Context
from pose.lifting.attention.softmax import CrossAttention

ORDERS = ("parallel", "alternating")


def _check(order: str) -> None:
    if order not in ORDERS:
        raise ValueError(f"co-attention: order must be one of {', '.join(ORDERS)}, got {order!r}")


class CoAttention(nn.Module):
    """Attention of each of two sequences to the other: x' = x + attention(x, z) and z' = z + attention(z, x)."""

    # Order "alternating" uses z' = z + attention(z, x'). Queries and keys are rotated by their own times in seconds. If
    # one sequence has no valid frames, the other is unchanged.

    def __init__(self, dim: int, heads: int, order: str = "parallel") -> None:
        super().__init__()
        _check(order)
        self.alternating = order == "alternating"
        self.first, self.second = CrossAttention(dim, heads), CrossAttention(dim, heads)

    def forward(self, x_BTD: Tensor, x_context: Context, z_BSD: Tensor, z_context: Context) -> tuple[Tensor, Tensor]:
        """Return both sequences, (B, T, D) and (B, S, D), with the attention to valid frames of the other one added."""
        x = x_BTD + self.first(x_BTD, x_context, self.first.remember(z_BSD, z_context), z_context.valid)
        seen = x if self.alternating else x_BTD
        z = z_BSD + self.second(z_BSD, z_context, self.second.remember(seen, x_context), x_context.valid)
        return x, z


class CoAttentionHalves(Attention):
    """Co-attention of the tokens' two halves, `parallel`, or `alternating`: the second sees the new first."""

    capabilities = Capabilities(padding=True, causal=False, streaming=False, relative_time=True, cost="O(T^2 D)")

    def __init__(self, dim: int, heads: int, *, causal: bool = False, order: str = "parallel") -> None:
        super().__init__(dim, heads, causal=causal)
        if heads % 2:
            raise ValueError(f"co-attention: each half of the features needs heads of its own, got {heads} heads")
        self.v_proj, self.out_proj = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.halves = CoAttention(dim // 2, heads // 2, order)

    def mix(self, x_BTD: Tensor, context: Context) -> Tensor:
        first, second = self.v_proj(x_BTD).chunk(2, dim=-1)
        mixed: Tensor = self.out_proj(torch.cat(self.halves(first, context, second, context), dim=-1))
        return mixed


class ParallelSummaries(nn.Module):
    """A summary of each sequence, conditioned on the other (Lu et al., 2016, parallel)."""

    # For X (T, D) and Z (S, D): C = tanh(Z W_b X^T), H_x = tanh(X W_x + C^T Z W_z), H_z = tanh(Z W_z + C X W_x). The
    # summaries are softmax(H_x w_x)^T X and softmax(H_z w_z)^T Z.

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.affinity = nn.Linear(dim, dim, bias=False)
        self.x_hidden, self.z_hidden = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.x_score, self.z_score = nn.Linear(hidden, 1, bias=False), nn.Linear(hidden, 1, bias=False)

    def forward(
        self, x_BTD: Tensor, z_BSD: Tensor, x_valid: Tensor | None = None, z_valid: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute the summary of each sequence, (B, D) each; 0 for a sequence without valid tokens."""
        x_BTD, z_BSD = _zero_invalid(x_BTD, x_valid), _zero_invalid(z_BSD, z_valid)
        affinity_BST = torch.tanh(z_BSD @ self.affinity(x_BTD).mT)
        x_said, z_said = self.x_hidden(x_BTD), self.z_hidden(z_BSD)
        x_scores = self.x_score(torch.tanh(x_said + affinity_BST.mT @ z_said))
        z_scores = self.z_score(torch.tanh(z_said + affinity_BST @ x_said))
        return summary(x_scores, x_BTD, x_valid), summary(z_scores, z_BSD, z_valid)


class AlternatingSummaries(nn.Module):
    """Summaries in three steps (Lu et al., 2016, alternating): of z, of x given z, and of z given x."""

    # Each step summarises X given the summary g of the other sequence: softmax(w.tanh(W X + W_g g)) X. The first step
    # has no g. Each step has its own weights.

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.seen = nn.ModuleList(nn.Linear(dim, hidden) for _ in range(3))
        self.guide = nn.ModuleList(nn.Linear(dim, hidden, bias=False) for _ in range(2))
        self.score = nn.ModuleList(nn.Linear(hidden, 1, bias=False) for _ in range(3))

    def forward(
        self, x_BTD: Tensor, z_BSD: Tensor, x_valid: Tensor | None = None, z_valid: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Compute both summaries; arguments and results are those of `ParallelSummaries.forward`."""
        x_BTD, z_BSD = _zero_invalid(x_BTD, x_valid), _zero_invalid(z_BSD, z_valid)
        z_BD = summary(self.score[0](torch.tanh(self.seen[0](z_BSD))), z_BSD, z_valid)
        x_BD = self._guided(1, x_BTD, z_BD, x_valid)
        return x_BD, self._guided(2, z_BSD, x_BD, z_valid)

    def _guided(self, step: int, x_BTD: Tensor, guide_BD: Tensor, valid: Tensor | None) -> Tensor:
        hidden = torch.tanh(self.seen[step](x_BTD) + self.guide[step - 1](guide_BD)[:, None])
        return summary(self.score[step](hidden), x_BTD, valid)


def summary(scores_BT1: Tensor, x_BTD: Tensor, valid_BT: Tensor | None) -> Tensor:
    """Compute the mean (B, D) of the valid tokens weighted by softmax(scores); 0 if there are none."""
    if valid_BT is None:
        return (scores_BT1.softmax(dim=-2) * x_BTD).sum(dim=-2)
    invalid = ~valid_BT[..., None]
    none_valid = invalid.all(dim=-2, keepdim=True)
    weights = scores_BT1.masked_fill(invalid & ~none_valid, -torch.inf).softmax(dim=-2)
    return (weights.masked_fill(invalid, 0) * x_BTD.masked_fill(invalid, 0)).sum(dim=-2)


def _zero_invalid(x_BTD: Tensor, valid_BT: Tensor | None) -> Tensor:
    return x_BTD if valid_BT is None else x_BTD.masked_fill(~valid_BT[..., None], 0)
