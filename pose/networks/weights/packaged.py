"""The project's own weights, shipped inside the package: `pose/models/NAME.safetensors` (networks) or `NAME.npz`
(the body model), with a card `NAME.json`."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from pose.networks.weights.catalogue import InPackage, Weight

MODELS = Path(__file__).resolve().parents[2] / "models"


def packaged_weights(folder: Path = MODELS) -> dict[str, Weight]:
    """Return catalogue entries of the weight files in `folder`, by name, with licence and hash of their cards."""
    entries = {}
    for path in sorted((*folder.glob("*.safetensors"), *folder.glob("*.npz"))):
        card_path = path.with_suffix(".json")
        card = _card(card_path, file_state(card_path)) if card_path.is_file() else {}
        entries[path.stem] = Weight(
            name=path.stem,
            file=path.name,
            licence=card.get("licence", "Apache-2.0"),
            sha256=card.get("sha256"),
            size=path.stat().st_size,
            source=InPackage(),
        )
    return entries


def file_state(path: Path) -> tuple[int, ...]:
    """Return numbers that differ after a change of a file."""
    now = path.stat()
    return now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns


@cache
def _card(path: Path, state: tuple[int, ...]) -> dict[str, Any]:
    """Return the card of a weight file; an unchanged card is read once in a process."""
    card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return card
