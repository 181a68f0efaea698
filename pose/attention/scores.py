"""How well a query and a key go together: the alignment functions of the literature, one small module each.

A score is taken in two steps, so that a stream can keep its keys: `queries` and `keys` make what is compared (rotated
by time, or with the phases of time beside it), and `compare` gives the number for each pair.

Axes: B batch, H head, T query, S key, K feature of one head, A hidden unit of a scorer, P feature as compared.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.attention.base import Context, rotate

BLOCK = 64  # queries whose hidden units are there at a time, where a score has such


class Score(nn.Module):
    """q.k, rotated by time. Subclasses say what else becomes of queries before (`transform`) or of products after.

    width: features of a key as it is compared and kept.
    """

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__()
        self.heads, self.head_dim, self.width = heads, head_dim, head_dim

    def queries(self, q_BHTK: Tensor, context: Context) -> Tensor:
        """(B, H, T, P)."""
        return rotate(self.transform(q_BHTK), context)

    def keys(self, k_BHSK: Tensor, context: Context) -> Tensor:
        """(B, H, S, P)."""
        return rotate(k_BHSK, context)

    def transform(self, q_BHTK: Tensor) -> Tensor:
        return q_BHTK

    def compare(self, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        """(B, H, T, S)."""
        return q_BHTP @ k_BHSP.mT


class ScaledDot(Score):
    """q.k / sqrt(K) (Vaswani et al., 2017): a dot product of K unit features has standard deviation sqrt(K)."""

    def compare(self, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        return super().compare(q_BHTP, k_BHSP) / math.sqrt(self.head_dim)


class Cosine(Score):
    """b q.k / (|q| |k|) (Graves et al., 2014) with a learnt b > 0 for each head: without it a softmax over many frames
    cannot be sure, since all scores lie within 2."""

    START, EPS = 8.0, 1e-6

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.sharpness = nn.Parameter(torch.full((heads,), math.log(math.expm1(self.START))))

    def compare(self, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        directions = (F.normalize(x, dim=-1, eps=self.EPS) for x in (q_BHTP, k_BHSP))
        return F.softplus(self.sharpness)[:, None, None] * super().compare(*directions)


class General(Score):
    """q^T W k (Luong et al., 2015). W starts as 1 / sqrt(K), where it is the scaled dot product."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.weight = nn.Parameter(torch.eye(head_dim).repeat(heads, 1, 1) / math.sqrt(head_dim))

    def transform(self, q_BHTK: Tensor) -> Tensor:
        return q_BHTK @ self.weight


class BiasedGeneral(General):
    """k^T (W q + b) (Sordoni et al., 2016)."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.bias = nn.Parameter(torch.zeros(heads, head_dim))

    def transform(self, q_BHTK: Tensor) -> Tensor:
        return super().transform(q_BHTK) + self.bias[:, None]


class ActivatedGeneral(General):
    """c tanh(q^T W k + b) (Ma et al., 2017) with a learnt c for each head: without it scores lie within 2."""

    START = 8.0

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.bias = nn.Parameter(torch.zeros(heads))
        self.scale = nn.Parameter(torch.full((heads,), self.START))

    def compare(self, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        return self.scale[:, None, None] * torch.tanh(super().compare(q_BHTP, k_BHSP) + self.bias[:, None, None])


class Additive(Score):
    """w^T tanh(W_q q + W_k k + b) (Bahdanau et al., 2015), A = K hidden units a head, and for the time between the two,
    which a rotation could not tell it, c.[cos(omega d), sin(omega d)] with a learnt c for each head."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.width = 2 * head_dim
        self.query_weight = nn.Parameter(torch.empty(heads, head_dim, head_dim))
        self.key_weight = nn.Parameter(torch.empty(heads, head_dim, head_dim))
        self.bias = nn.Parameter(torch.zeros(heads, head_dim))
        self.out = nn.Parameter(torch.empty(heads, head_dim))
        self.time = nn.Parameter(torch.empty(heads, head_dim))
        for weight in (self.query_weight, self.key_weight, self.out):
            nn.init.normal_(weight, std=head_dim**-0.5)
        nn.init.normal_(self.time, std=0.5)

    def queries(self, q_BHTK: Tensor, context: Context) -> Tensor:
        """W_q q + b, and c turned to the query's time: its product with a key's phases is the term of time."""
        cos, sin = context.cos[:, None], context.sin[:, None]
        even, odd = self.time[:, None].chunk(2, dim=-1)
        turned = torch.cat((even * cos + odd * sin, even * sin - odd * cos), dim=-1)
        hidden = q_BHTK @ self.query_weight + self.bias[:, None]
        return torch.cat((hidden, turned.to(hidden.dtype)), dim=-1)

    def keys(self, k_BHSK: Tensor, context: Context) -> Tensor:
        phases = torch.cat((context.cos, context.sin), dim=-1)[:, None].expand_as(k_BHSK)
        hidden = k_BHSK @ self.key_weight
        return torch.cat((hidden, phases.to(hidden.dtype)), dim=-1)

    def compare(self, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        (q, turned), (k, phases) = q_BHTP.chunk(2, dim=-1), k_BHSP.chunk(2, dim=-1)
        pairs = [self.score(block[..., :, None, :] + k[..., None, :, :]) for block in q.split(BLOCK, dim=-2)]
        return torch.cat(pairs, dim=-2) + turned @ phases.mT

    def score(self, sum_BHTSA: Tensor) -> Tensor:
        """(B, H, T, S) from the sum of what query and key say to each hidden unit."""
        return (torch.tanh(sum_BHTSA) * self.out[:, None, None]).sum(dim=-1)


class Deep(Additive):
    """The additive score with one hidden layer more (Pavlopoulos et al., 2017)."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.hidden_weight = nn.Parameter(torch.empty(heads, head_dim, head_dim))
        self.hidden_bias = nn.Parameter(torch.zeros(heads, head_dim))
        nn.init.normal_(self.hidden_weight, std=head_dim**-0.5)

    def score(self, sum_BHTSA: Tensor) -> Tensor:
        hidden = torch.tanh(sum_BHTSA) @ self.hidden_weight[:, None]
        return super().score(hidden + self.hidden_bias[:, None, None])


SCORES: dict[str, type[Score]] = {
    "scaled-dot": ScaledDot,
    "dot": Score,
    "cosine": Cosine,
    "general": General,
    "biased-general": BiasedGeneral,
    "activated-general": ActivatedGeneral,
    "additive": Additive,
    "deep": Deep,
}
