"""Study of the standard deviation of scores against the width of a head: why the dot product is scaled.

There is no training: queries and keys are standard normal, as at the start of a training.
"""

import math
from dataclasses import dataclass

import torch

from pose.lifting.attention import Context
from pose.training.attention.distributions import DISTRIBUTIONS, Compared
from pose.training.attention.scores import SCORES
from pose.training.laboratory.trial import Outcome, Setup

COLUMNS = {
    "spread": "spread of the scores",
    "largest": "largest weight, %",
    "effective": "keys seen (2^entropy)",
    "passed": "gradient passed, %",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreWidthsSettings:
    """Settings for one condition of a `score-widths` experiment."""

    score: str  # score function, a key of `pose.training.attention.scores.SCORES`
    width: int  # number of features of a head
    distribution: str = "softmax"  # function from scores to weights
    keys: int = 81  # number of random keys
    queries: int = 512  # number of random queries

    def __post_init__(self) -> None:
        for name, table in (("score", SCORES), ("distribution", DISTRIBUTIONS)):
            if getattr(self, name) not in table:
                raise ValueError(f"{name}: {getattr(self, name)!r} is not one of {', '.join(table)}")
        if self.width < 2 or self.width % 2 or self.keys < 2 or self.queries < 1:
            raise ValueError("width must be even, keys at least 2, queries at least 1")


def run(settings: ScoreWidthsSettings, setup: Setup) -> Outcome:
    """Measure statistics of scores and weights.

    Returns:
        `spread`: standard deviation of the scores. `largest`: mean of each query's largest weight. `effective`: mean of
            2^entropy. `passed`: mean of sum_s a_s (1 - a_s), the trace of the softmax's Jacobian, in per cent of that
            for equal weights. If one key has all the weight, `passed` is 0 and no gradient flows.
    """
    torch.manual_seed(setup.seed)
    score = SCORES[settings.score](1, settings.width).double()
    distribution = DISTRIBUTIONS[settings.distribution](1).double()
    q, k = (torch.randn(1, 1, n, settings.width, dtype=torch.float64) for n in (settings.queries, settings.keys))
    q_now, k_now = (Context.from_times(torch.zeros(1, x.shape[2], dtype=torch.float64), settings.width) for x in (q, k))
    with torch.inference_mode():
        queries, keys = score.queries(q, q_now), score.keys(k, k_now)
        scores = score.compare(queries, keys)
        compared = Compared(queries, keys, q_now.seconds, k_now.seconds)
        weights = distribution(scores, torch.ones(1, 1, 1, 1, dtype=torch.bool), compared)
    shares = weights.abs() / weights.abs().sum(dim=-1, keepdim=True)
    entropy = -torch.special.xlogy(shares, shares).sum(dim=-1) / math.log(2)
    results = {
        "spread": scores.std().item(),
        "largest": 100 * shares.amax(dim=-1).mean().item(),
        "effective": entropy.exp2().mean().item(),
        "passed": 100 * (shares * (1 - shares)).sum(dim=-1).mean().item() / (1 - 1 / settings.keys),
    }
    return Outcome(results)
