"""Safe reading of calibrations in XML."""

from collections.abc import Sequence
from xml.etree import ElementTree

import numpy as np


def root_of(text: str) -> ElementTree.Element:
    """Parse XML without a document type definition, which could expand to much memory.

    Raises:
        ValueError: If the text is not XML.
    """
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("a document type definition is not supported")
    try:
        return ElementTree.fromstring(text.strip().removeprefix("\ufeff").encode())
    except ElementTree.ParseError as error:
        raise ValueError(f"not XML: {error}") from error


def numbers(
    element: ElementTree.Element, name: str, count: int, missing: Sequence[float] | None = None
) -> Sequence[float]:
    """Return the last `count` numbers of an attribute, separated by white space.

    Raises:
        KeyError: If the attribute is missing, and `missing` is None.
        ValueError: If it has fewer numbers, or one is not finite.
    """
    said = element.get(name)
    if said is None:
        if missing is None:
            raise KeyError(name)
        return missing
    values = [float(word) for word in said.split()[-count:]]
    if len(values) < count:
        raise ValueError(f"{name}: expected {count} numbers")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} is not a finite number" if count == 1 else f"{name}: expected finite numbers")
    return values
