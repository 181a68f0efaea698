"""What the commands' tests share: a way to call a command as a user."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

Command = Callable[..., subprocess.CompletedProcess]
CommandLine = Callable[..., list[str]]


@pytest.fixture
def command_line() -> CommandLine:
    """What the entry point of `apps.<module>` does, as words for a new process."""

    def words(module: str, *arguments: object) -> list[str]:
        start = f"import sys; from apps.{module} import main; sys.exit(main())"
        return [sys.executable, "-c", start, *map(str, arguments)]

    return words


@pytest.fixture
def call(weights_dir, command_line) -> Command:
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
