"""Files of presets and recipes, which are data beside the packages."""

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
