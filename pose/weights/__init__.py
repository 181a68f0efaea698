"""Weights: what there is, where it lies on this machine, and how it gets here.

>>> from pose.weights import locate
>>> path = locate("blazepose-detector")  # doctest: +SKIP
"""

from pathlib import Path

from pose.weights.catalogue import WEIGHTS, Weight
from pose.weights.store import CorruptWeightError, FetchError, Store, UnverifiedWeightError, WeightStatus, sha256_of

__all__ = [
    "WEIGHTS",
    "CorruptWeightError",
    "FetchError",
    "Store",
    "UnverifiedWeightError",
    "Weight",
    "WeightStatus",
    "locate",
    "locate_if_reachable",
    "sha256_of",
]


def locate_if_reachable(name: str) -> Path | str:
    """Like `locate` for a weight that another one stands in for: the reason where its server does not answer.

    Whether it answers is known within 3 s, and a no is remembered for a day. Raises `CorruptWeightError`.
    """
    from pose.weights import reachable

    return reachable.locate_if_reachable(Store.from_environment(), name)


def locate(name: str) -> Path:
    """Path of a weight by its catalogue name, checked against its hash and fetched if this machine does not have it.

    Raises:
        UsageError: the catalogue has no such name.
        CorruptWeightError: a file of that name has other content.
        FetchError: it is not here and could not be fetched; the message says where to put it by hand.
    """
    return Store.from_environment().locate(name)
