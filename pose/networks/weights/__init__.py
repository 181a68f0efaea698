"""Access to network weights: the catalogue, local files and downloads.

>>> from pose.networks.weights import locate
>>> path = locate("blazepose-detector")  # doctest: +SKIP
"""

from pathlib import Path

from pose.networks.weights.catalogue import WEIGHTS, Weight
from pose.networks.weights.store import (
    CorruptWeightError,
    FetchError,
    Store,
    UnverifiedWeightError,
    WeightStatus,
    sha256_of,
)

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
    """Return the path of a weight file; if it is missing and cannot be downloaded, return the reason instead.

    It is for weights that have a fallback: it waits at most 3 s for the server, and remembers a failure for a day.
    Errors other than FetchError are those of `locate`.
    """
    from pose.networks.weights import reachable

    return reachable.locate_if_reachable(Store.from_environment(), name)


def locate(name: str) -> Path:
    """Return the path of a weight file, given its catalogue name.

    The file is downloaded if it is missing, and its hash is verified.

    Raises:
        UsageError: If the catalogue has no such name.
        CorruptWeightError: If a file of that name has other content.
        UnverifiedWeightError: If no hash is known to verify the file.
        FetchError: If the file is missing and the download fails. The message describes the manual installation.
    """
    return Store.from_environment().locate(name)
