"""What the tests of hands share."""

import pytest

from pose.networks.hands import WEIGHTS, HandNetwork, PalmDetector
from pose.networks.weights import FetchError, locate


@pytest.fixture(scope="module")
def networks():
    try:
        paths = [locate(name) for name in WEIGHTS]
    except FetchError as error:
        pytest.skip(str(error))
    return HandNetwork(model=paths[0]), PalmDetector(model=paths[1])
