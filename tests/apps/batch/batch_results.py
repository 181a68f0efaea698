"""Looking at what `pose-batch` wrote."""

import json
from pathlib import Path


def lines_of(folder: Path, name: str = "manifest.jsonl") -> dict[str, dict]:
    """Name -> line of the manifest, of which there is one for each clip."""
    lines = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    assert len({line["name"] for line in lines}) == len(lines)
    return {line["name"]: line for line in lines}


def results_of(folder: Path) -> dict[str, bytes]:
    """Relative path -> bytes of every file of results; nothing else may lie there but manifests and the cache."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {
        name: data for name, data in found.items() if not name.startswith(("manifest", ".cache/")) or ".part" in name
    }
