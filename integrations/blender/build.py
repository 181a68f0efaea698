"""Write the installable zip of the Blender extension: python integrations/blender/build.py [FOLDER]."""

import sys
import tomllib
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "pose_run"


def build(folder: Path) -> Path:
    """Write the zip into a folder, and return its path. The same files give the same bytes."""
    manifest = tomllib.loads((SOURCE / "blender_manifest.toml").read_text(encoding="utf-8"))
    target = folder / f"{manifest['id']}-{manifest['version']}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(SOURCE.iterdir()):
            if path.suffix in (".py", ".toml"):
                archive.writestr(zipfile.ZipInfo(path.name, (2026, 1, 1, 0, 0, 0)), path.read_bytes())
    return target


if __name__ == "__main__":
    print(build(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
