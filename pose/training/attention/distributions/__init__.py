"""Functions from scores to attention weights. To add one, add a line to `DISTRIBUTIONS`."""

from collections.abc import Callable

from pose.training.attention.distributions.base import Coda, Compared, Distribution, Ratio, Sigmoid
from pose.training.attention.distributions.continuous import Continuous, ContinuousSparse
from pose.training.attention.distributions.entmax import Entmax, Entmax15, Sparsemax
from pose.training.attention.distributions.sampled import Hard, StraightThrough

__all__ = ["DISTRIBUTIONS", "Compared", "Distribution", "Hard"]

DISTRIBUTIONS: dict[str, Callable[[int], Distribution]] = {
    "softmax": Distribution,
    "sigmoid": Sigmoid,
    "ratio": Ratio,
    "sparsemax": Sparsemax,
    "entmax15": Entmax15,
    "entmax": Entmax,
    "coda": Coda,
    "continuous": Continuous,
    "continuous-sparse": ContinuousSparse,
    "hard": Hard,
    "straight-through": StraightThrough,
}
