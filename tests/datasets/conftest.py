"""Fixtures of the motion-capture tests: the real database beside the checkout, some subjects of it read once."""

from pathlib import Path

import numpy as np
import pytest
from pose_datasets import mocap


@pytest.fixture(scope="session")
def cmu(shared) -> Path:
    return shared / "mocap" / "cmu"


@pytest.fixture(scope="session")
def trials(cmu) -> dict[str, np.ndarray]:
    """Trial -> points (T, 19, 3) m, of small subjects that cover all formats."""
    found = {}
    for subject in ("07", "12", "26", "131"):
        for _, trial, points, _ in mocap.read_subject(cmu / f"{subject}.zip"):
            found[trial] = points
    return found


@pytest.fixture(scope="session")
def clips(trials) -> list[mocap.Clip]:
    """A few real clips at 60 Hz: a walk, a figure of Daz, two of MotionBuilder."""
    chosen = []
    for trial in ("07_01", "12_01", "26_01", "131_01", "07_11"):
        points, times = mocap.decimate(trials[trial], np.arange(len(trials[trial])) / 120)
        chosen.append(mocap.Clip(trial.split("_")[0], trial, points.astype(np.float32), times))
    return chosen
