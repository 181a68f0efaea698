"""Weights: catalogue, local files and download.

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
    """Like `locate`, for a weight with a fallback: returns the reason if its server does not answer.

    The check takes at most 3 s, and a failure is remembered for a day.

    Raises:
        CorruptWeightError: For a damaged file in a folder of the user.
    """
    from pose.weights import reachable

    return reachable.locate_if_reachable(Store.from_environment(), name)


def locate(name: str) -> Path:
    """Return the path of a weight by its catalogue name, verified by its hash, and downloaded if it is missing.

    Raises:
        UsageError: If the catalogue has no such name.
        CorruptWeightError: If a file of that name has other content.
        FetchError: If it is missing and the download fails; the message describes the manual installation.
    """
    return Store.from_environment().locate(name)
