"""Score functions of queries and keys from the literature, each a small `torch.nn.Module`.

A score is computed in two steps, so that a stream can cache its keys: `queries` and `keys` compute what is compared
(rotated by time, or concatenated with the phases of time), and `compare` computes the score of each pair.

Axes: B batch, H head, T query, S key, K feature of one head, A hidden unit of a scorer, P feature that is compared.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pose.lifting.attention.base import Context, rotate
from pose.training.attention.time_codes import DEFAULT_LENGTH

# Pairs of queries and keys whose hidden units are computed at once; they fit into the CPU's cache.
PAIRS_PER_BLOCK = 2048


def query_block_size(keys: int) -> int:
    """Return how many queries to compare with `keys` keys at once; their hidden units then fit into the CPU's cache."""
    return max(1, PAIRS_PER_BLOCK // keys)


class Score(nn.Module):
    """Dot product q.k with rotary time, and the base of scores, which override `transform` or `compare`."""

    reads_query = reads_key = reads_time = streaming = has_distance = True
    max_length: int | None = None  # longest sequence in frames; None for any

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__()
        self.heads, self.head_dim, self.width = heads, head_dim, head_dim

    def queries(self, q_BHTK: Tensor, context: Context) -> Tensor:
        """Transform and rotate the queries for `compare`; returns (B, H, T, P), with P = `width`."""
        return rotate(self.transform(q_BHTK), context)

    def keys(self, k_BHSK: Tensor, context: Context) -> Tensor:
        """Rotate the keys for `compare`; returns (B, H, S, P), with P = `width`."""
        return rotate(k_BHSK, context)

    def transform(self, q_BHTK: Tensor) -> Tensor:
        """Transform the queries before the comparison; the identity by default."""
        return q_BHTK

    def compare(self, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        """Compute the scores (B, H, T, S) of T queries and S keys, as returned by `queries` and `keys`."""
        return q_BHTP @ k_BHSP.mT


class ScaledDot(Score):
    """q.k / sqrt(K) (Vaswani et al., 2017)."""

    def compare(self, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        return super().compare(q_BHTP, k_BHSP) / math.sqrt(self.head_dim)


class Cosine(Score):
    """b q.k / (|q| |k|) (Graves et al., 2014) with a learned b > 0 per head."""

    # Without b all scores would lie between -1 and 1, and a softmax over many frames could not become sharp.

    START, EPS = 8.0, 1e-6

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.sharpness = nn.Parameter(torch.full((heads,), math.log(math.expm1(self.START))))

    def compare(self, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        directions = (F.normalize(x, dim=-1, eps=self.EPS) for x in (q_BHTP, k_BHSP))
        return F.softplus(self.sharpness)[:, None, None] * super().compare(*directions)


class General(Score):
    """q^T W k (Luong et al., 2015). W is initialised to the identity / sqrt(K), which gives the scaled dot product."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.weight = nn.Parameter(torch.eye(head_dim).repeat(heads, 1, 1) / math.sqrt(head_dim))

    def transform(self, q_BHTK: Tensor) -> Tensor:
        """Multiply the queries by a learned matrix."""
        return q_BHTK @ self.weight


class BiasedGeneral(General):
    """k^T (W q + b) (Sordoni et al., 2016)."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.bias = nn.Parameter(torch.zeros(heads, head_dim))

    def transform(self, q_BHTK: Tensor) -> Tensor:
        """Multiply the queries by a learned matrix and add a bias."""
        return super().transform(q_BHTK) + self.bias[:, None]


class ActivatedGeneral(General):
    """c tanh(q^T W k + b) (Ma et al., 2017) with a learned c per head; without c, scores would lie between -1 and 1."""

    START = 8.0

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.bias = nn.Parameter(torch.zeros(heads))
        self.scale = nn.Parameter(torch.full((heads,), self.START))

    def compare(self, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        return self.scale[:, None, None] * torch.tanh(super().compare(q_BHTP, k_BHSP) + self.bias[:, None, None])


class TimeTermScore(Score):
    """Base class of scores that cannot use rotary time; a time term is added instead."""

    # The time term is c.[cos(omega d), sin(omega d)] of the time d between query and key, with a learned c per head.
    # Subclasses compute hidden features of queries and keys, which are concatenated with the phases.

    has_distance = False

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.width = 2 * head_dim
        self.time = nn.Parameter(torch.empty(heads, head_dim))
        nn.init.normal_(self.time, std=0.5)

    def hidden_query(self, q_BHTK: Tensor) -> Tensor:
        """Compute the part of the hidden features that depends on the query, (B, H, T, K)."""
        raise NotImplementedError

    def hidden_key(self, k_BHSK: Tensor) -> Tensor:
        """Compute the part of the hidden features that depends on the key, (B, H, S, K)."""
        raise NotImplementedError

    def queries(self, q_BHTK: Tensor, context: Context) -> Tensor:
        """Compute features (B, H, T, 2 K) of the queries: hidden ones, then c rotated by the query's phases."""
        cos, sin = context.cos[:, None], context.sin[:, None]
        even, odd = self.time[:, None].chunk(2, dim=-1)
        turned = torch.cat((even * cos + odd * sin, even * sin - odd * cos), dim=-1)
        hidden = self.hidden_query(q_BHTK)
        return torch.cat((hidden, turned.to(hidden.dtype)), dim=-1)

    def keys(self, k_BHSK: Tensor, context: Context) -> Tensor:
        phases = torch.cat((context.cos, context.sin), dim=-1)[:, None].expand_as(k_BHSK)
        hidden = self.hidden_key(k_BHSK)
        return torch.cat((hidden, phases.to(hidden.dtype)), dim=-1)


class Additive(TimeTermScore):
    """w^T tanh(W_q q + W_k k + b) (Bahdanau et al., 2015), with A = K hidden units per head and the time term."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.query_weight = nn.Parameter(torch.empty(heads, head_dim, head_dim))
        self.key_weight = nn.Parameter(torch.empty(heads, head_dim, head_dim))
        self.bias = nn.Parameter(torch.zeros(heads, head_dim))
        self.out = nn.Parameter(torch.empty(heads, head_dim))
        for weight in (self.query_weight, self.key_weight, self.out):
            nn.init.normal_(weight, std=head_dim**-0.5)

    def hidden_query(self, q_BHTK: Tensor) -> Tensor:
        """Project the queries to the hidden features."""
        return q_BHTK @ self.query_weight + self.bias[:, None]

    def hidden_key(self, k_BHSK: Tensor) -> Tensor:
        """Project the keys to the hidden features."""
        return k_BHSK @ self.key_weight

    def compare(self, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        (q, turned), (k, phases) = q_BHTP.chunk(2, dim=-1), k_BHSP.chunk(2, dim=-1)
        blocks = q.split(query_block_size(k.shape[-2]), dim=-2)
        pairs = [self.score(block[..., :, None, :] + k[..., None, :, :]) for block in blocks]
        return torch.cat(pairs, dim=-2) + turned @ phases.mT

    def score(self, sum_BHTSA: Tensor) -> Tensor:
        """Compute the scores (B, H, T, S), given the sum of the A hidden units of each pair of query and key."""
        return (torch.tanh(sum_BHTSA) * self.out[:, None, None]).sum(dim=-1)


class Deep(Additive):
    """The additive score with one more hidden layer (Pavlopoulos et al., 2017)."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.hidden_weight = nn.Parameter(torch.empty(heads, head_dim, head_dim))
        self.hidden_bias = nn.Parameter(torch.zeros(heads, head_dim))
        nn.init.normal_(self.hidden_weight, std=head_dim**-0.5)

    def score(self, sum_BHTSA: Tensor) -> Tensor:
        hidden = torch.tanh(sum_BHTSA) @ self.hidden_weight[:, None]
        return super().score(hidden + self.hidden_bias[:, None, None])


class Kernel(TimeTermScore):
    """phi(q).phi(k) with phi = relu + 0.001 (Choromanski et al., 2021), for the distribution `ratio`."""

    # Scores must not be negative. The time term is therefore not added; its exponential multiplies the score.

    LEAST = 1e-3

    def hidden_query(self, q_BHTK: Tensor) -> Tensor:
        """Compute the positive features of the queries."""
        return q_BHTK.relu() + self.LEAST

    def hidden_key(self, k_BHSK: Tensor) -> Tensor:
        """Compute the positive features of the keys."""
        return self.hidden_query(k_BHSK)

    def compare(self, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        (q, turned), (k, phases) = q_BHTP.chunk(2, dim=-1), k_BHSP.chunk(2, dim=-1)
        return q @ k.mT * torch.exp(turned @ phases.mT)


class Location(Score):
    """c tanh(W q)_s (Luong et al., 2015): the query scores each frame number s without keys; c is learned per head."""

    reads_key = reads_time = streaming = has_distance = False
    START = 8.0

    def __init__(self, heads: int, head_dim: int, max_length: int = DEFAULT_LENGTH) -> None:
        super().__init__(heads, head_dim)
        self.max_length = max_length
        self.weight = nn.Parameter(torch.empty(heads, head_dim, max_length))
        self.scale = nn.Parameter(torch.full((heads,), self.START))
        nn.init.normal_(self.weight, std=head_dim**-0.5)

    def queries(self, q_BHTK: Tensor, context: Context) -> Tensor:
        return self.scale[:, None, None] * torch.tanh(q_BHTK @ self.weight)

    def keys(self, k_BHSK: Tensor, context: Context) -> Tensor:
        return k_BHSK

    def compare(self, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        return q_BHTP[..., : k_BHSP.shape[2]]


class Feature(Score):
    """Score w.tanh(W_0 mean + W_1 spread + w_2 ln n + b) of a segment, independent of the query (Li et al., 2019)."""

    # A segment is the last 5 frames up to s, of which n are valid. Mean and spread (standard deviation) are over their
    # keys.

    reads_query = reads_time = streaming = has_distance = False
    FRAMES = 5
    EPS = 1e-6  # added under the root, whose slope at 0 is infinite

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__(heads, head_dim)
        self.mean_weight = nn.Parameter(torch.empty(heads, head_dim, head_dim))
        self.spread_weight = nn.Parameter(torch.empty(heads, head_dim, head_dim))
        self.count_weight = nn.Parameter(torch.zeros(heads, head_dim))
        self.bias = nn.Parameter(torch.zeros(heads, head_dim))
        self.out = nn.Parameter(torch.empty(heads, head_dim))
        for weight in (self.mean_weight, self.spread_weight, self.out):
            nn.init.normal_(weight, std=head_dim**-0.5)

    def queries(self, q_BHTK: Tensor, context: Context) -> Tensor:
        return q_BHTK

    def keys(self, k_BHSK: Tensor, context: Context) -> Tensor:
        """Compute the scores (B, H, S, 1) of the S keys. `compare` expands them to all queries."""
        there_BS = k_BHSK.new_ones(len(k_BHSK), k_BHSK.shape[2])
        if context.valid is not None:
            there_BS = context.valid.to(k_BHSK.dtype)
        there_B1S1F = self._segments(there_BS[:, None, :, None])
        segment_BHSKF = self._segments(k_BHSK)
        count_B1S1 = there_B1S1F.sum(dim=-1).clamp_min(1)
        mean_BHSK = (segment_BHSKF * there_B1S1F).sum(dim=-1) / count_B1S1
        apart = (segment_BHSKF - mean_BHSK[..., None]) * there_B1S1F
        spread_BHSK = (apart.square().sum(dim=-1) / count_B1S1 + self.EPS).sqrt()
        hidden = mean_BHSK @ self.mean_weight + spread_BHSK @ self.spread_weight
        hidden = hidden + self.count_weight[:, None] * count_B1S1.log() + self.bias[:, None]
        return (torch.tanh(hidden) * self.out[:, None]).sum(dim=-1, keepdim=True)

    def _segments(self, x_BHSK: Tensor) -> Tensor:
        """Gather each frame with the frames before it, (B, H, S, K, F), with F = `FRAMES`."""
        return F.pad(x_BHSK, (0, 0, self.FRAMES - 1, 0)).unfold(2, self.FRAMES, 1)

    def compare(self, q_BHTP: Tensor, k_BHSP: Tensor) -> Tensor:
        return k_BHSP.mT.expand(-1, -1, q_BHTP.shape[2], -1)


SCORES: dict[str, type[Score]] = {
    "scaled-dot": ScaledDot,
    "dot": Score,
    "cosine": Cosine,
    "general": General,
    "biased-general": BiasedGeneral,
    "activated-general": ActivatedGeneral,
    "additive": Additive,
    "deep": Deep,
    "kernel": Kernel,
    "location": Location,
    "feature": Feature,
}
