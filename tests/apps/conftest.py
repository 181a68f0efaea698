"""What the commands' tests share: a lifter small enough to load in no time, and a way to call a command as a user."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess]


@pytest.fixture(scope="session")
def tiny_lifter(tmp_path_factory) -> Path:
    """A checkpoint of the real form with untrained weights: what comes out is no pose, but finite and repeatable."""
    import torch

    from pose.lifter.checkpoint import save_checkpoint
    from pose.lifter.model import LifterConfig, LifterNetwork

    path = tmp_path_factory.mktemp("lifter") / "tiny.safetensors"
    torch.manual_seed(0)
    save_checkpoint(LifterNetwork(LifterConfig(dim=16, depth=1, heads=2)), path)
    return path


@pytest.fixture
def call(weights_dir) -> Command:
    """Runs a command of the project in a process of its own."""

    def run(module: str, *arguments: object, **options: object) -> subprocess.CompletedProcess:
        return subprocess.run(
            command_line(module, *arguments),
            env={**os.environ, "POSE_WEIGHTS_DIR": str(weights_dir)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            **options,
        )

    return run


def command_line(module: str, *arguments: object) -> list[str]:
    """What the entry point of `apps.<module>` does."""
    start = f"import sys; from apps.{module} import main; sys.exit(main())"
    return [sys.executable, "-c", start, *map(str, arguments)]
