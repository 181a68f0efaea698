"""Access to network weights: the catalogue, local files and downloads.

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
    """Return the path of a weight, or the reason why it is not available if its server does not answer.

    Use this instead of `locate` for weights that have a fallback.

    The check of the server takes at most 3 s. A failure is remembered for a day.

    Raises:
        CorruptWeightError: If a file in one of the user's folders is damaged.
    """
    from pose.weights import reachable

    return reachable.locate_if_reachable(Store.from_environment(), name)


def locate(name: str) -> Path:
    """Return the path of a weight file, given its catalogue name.

    The file is downloaded if it is missing, and its hash is verified.

    Raises:
        UsageError: If the catalogue has no such name.
        CorruptWeightError: If a file of that name has other content.
        FetchError: If the file is missing and the download fails. The message describes the manual installation.
    """
    return Store.from_environment().locate(name)
