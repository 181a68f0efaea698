"""What the tests of `pose-batch` share: short clips of the real ones."""

import pytest


@pytest.fixture
def at_hand(weights_dir, monkeypatch) -> None:
    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
