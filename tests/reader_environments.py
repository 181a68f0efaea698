"""Environments of the programs that read exported files: `$POSE_READERS/NAME`, made by `.ci/nightly`."""

import os
from pathlib import Path

import pytest


def environment(name: str) -> Path:
    """Return the environment of a program; skip the test without it."""
    folder = os.environ.get("POSE_READERS")
    if folder is None or not (Path(folder) / name).exists():
        pytest.skip(f"no {name}: POSE_READERS names no folder with an environment of that name")
    return Path(folder) / name


def clean_environment() -> dict[str, str]:
    """Return the environment variables without those that lead to the packages of this Python."""
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
