"""What the commands' tests share: a way to call a command as a user."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
SCRIPTS = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["scripts"]

NO_TORCH = 'import sys; sys.modules["torch"] = None; '  # from here on `import torch` is a ModuleNotFoundError

Command = Callable[..., subprocess.CompletedProcess]
CommandLine = Callable[..., list[str]]


@pytest.fixture
def command_line() -> CommandLine:
    """What the command `pose-<name>` does, as words for a new process."""

    def words(name: str, *arguments: object) -> list[str]:
        module, _, function = SCRIPTS[f"pose-{name}"].partition(":")
        start = f"import sys; from {module} import {function}; sys.exit({function}())"
        return [sys.executable, "-c", start, *map(str, arguments)]

    return words


@pytest.fixture
def call(weights_setting, command_line) -> Command:
    """Runs a command of the project in a process of its own."""

    def run(name: str, *arguments: object, **options: object) -> subprocess.CompletedProcess:
        return subprocess.run(
            command_line(name, *arguments),
            env={**os.environ, **weights_setting},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            **options,
        )

    return run


@pytest.fixture
def call_without_torch(weights_setting, command_line) -> Command:
    """Runs a command in a process that cannot import torch."""

    def run(name: str, *arguments: object) -> subprocess.CompletedProcess:
        python, _, code, *words = command_line(name, *arguments)
        environment = {**os.environ, **weights_setting}
        return subprocess.run([python, "-c", NO_TORCH + code, *words], env=environment, capture_output=True, text=True)

    return run


@pytest.fixture(autouse=True)
def fast_networks(monkeypatch) -> None:
    """The preset fast is the default in this process: the commands are the same, and load and run one network less."""
    monkeypatch.setattr("pose.config.default_preset", lambda device: "fast")


@pytest.fixture
def clips(tmp_path) -> list[str]:
    """Two files that are no videos."""
    paths = [tmp_path / "left.mp4", tmp_path / "right.mp4"]
    for number, path in enumerate(paths):
        path.write_bytes(b"no video %d" % number)
    return list(map(str, paths))
