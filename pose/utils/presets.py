"""Files of presets and recipes, which are data beside the packages, and Python files of users (plugins)."""

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pose.errors import UsageError
from pose.utils.json_values import Json


def presets_folder() -> Path:
    """Return the folder of presets and recipes: `pose/configs` if installed, `configs` in a source checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"


def preset_names() -> list[str]:
    """Return the names of the included presets."""
    return sorted(entry.stem for entry in presets_folder().glob("*.yaml"))


def preset_text(name: str) -> str:
    """Return the YAML text of a preset."""
    if name not in preset_names():
        raise UsageError(f"preset {name!r} is unknown; known: {', '.join(preset_names())}")
    return (presets_folder() / f"{name}.yaml").read_text(encoding="utf-8")


def preset_values(name: str) -> dict[str, Json]:
    """Return the fields that a preset sets, with their values."""
    import yaml

    return dict(yaml.safe_load(preset_text(name)))


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
