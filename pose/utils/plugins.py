"""Python files of users that register own attention mechanisms, for every command and its worker processes."""

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pose.errors import UsageError

VARIABLE = "POSE_PLUGIN"  # paths, separated like those in PATH; worker processes inherit it


def without_plugins(words: Sequence[str]) -> list[str]:
    """Note the files of each `--plugin FILE` in the arguments of a command, and return the other arguments.

    They are imported when a network is built, so that commands without torch stay fast.

    Raises:
        UsageError: If a file is missing.
    """
    others, paths = [], []
    remaining = iter(words)
    for word in remaining:
        if word == "--plugin" or word.startswith("--plugin="):
            path = Path(word.removeprefix("--plugin=") if "=" in word else next(remaining, ""))
            if not path.is_file():
                raise UsageError(f"--plugin: expected a Python file, got {str(path)!r}")
            paths.append(str(path.resolve()))
        else:
            others.append(word)
    if paths:
        os.environ[VARIABLE] = os.pathsep.join(paths)
    return others


def load_plugins() -> None:
    """Import the files named in the environment variable that are not imported yet."""
    for path in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        name = f"pose_plugin:{path}"
        if name in sys.modules:
            continue
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise UsageError(f"--plugin: expected a Python file (.py), got {path!r}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
