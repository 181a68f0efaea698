"""Functions from scores to attention weights. To add one, add a line to `DISTRIBUTIONS`."""

from collections.abc import Callable

from pose.attention.distributions.base import Compared, Distribution, Ratio, Sigmoid
from pose.attention.distributions.coda import Coda
from pose.attention.distributions.continuous import Continuous, ContinuousSparse
from pose.attention.distributions.entmax import Entmax, Entmax15, Sparsemax
from pose.attention.distributions.sampled import Hard, StraightThrough

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
