"""Sixteen common changes touch at most two files each.

docs/architecture.md names the files. The names of existing entries occur in no other source file, so a further entry
needs no other file either.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from pose.view.colours import SIDE_COLOURS

ROOT = Path(__file__).resolve().parents[1]
PROBES = (
    "a detector", "a 2D estimator", "an attention mechanism", "a term of the training loss", "a learning rate schedule",
    "an export format", "a joint set", "a data set to prepare", "a metric", "a default or a threshold that can be set",
    "an option of a command", "a colour of body sides", "downloadable weights", "what a command prints", "a tracker",
    "an experiment",
)  # fmt: skip


ENTRIES = {  # an existing entry for each table of names
    "a detector": "yolox",
    "a 2D estimator": "rtmpose-x-halpe26",
    "an attention mechanism": "transformer-xl",
    "a learning rate schedule": "inverse-sqrt",
    "an export format": "trc",
    "a joint set": "wholebody133",
    "a data set to prepare": "ui-prmd",
    "a metric": "n_mpjpe",
    "a default or a threshold that can be set": "detect_every",
    "an option of a command": "image_fps",
    "downloadable weights": "rtmpose-x-halpe26-384x288",
    "a tracker": "botsort",
}


@cache
def words_by_file() -> dict[str, set[str]]:
    """Strings, fields and keyword arguments of every source file."""
    found = {}
    for folder in ("pose", "apps/pose_apps", "datasets/pose_datasets", "detectors/pose_detectors"):
        for path in (ROOT / folder).rglob("*.py"):
            words = found[path.relative_to(ROOT).as_posix()] = set()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    words.add(node.value)
                elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    words.add(node.target.id)
    return found


def rows() -> dict[str, tuple[str, str]]:
    """What is changed -> where, and what else."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Where would I change")[2]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {what: (where, also) for what, where, also in cells}


@pytest.mark.parametrize("probe", PROBES)
def test_a_change_touches_two_files_at_most(probe):
    """What follows a semicolon is needed in some cases only."""
    where, also = rows()[probe]
    files = set(re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", f"{where} {also.partition(';')[0]}"))
    assert 1 <= len(files) <= 2
    for file in files:
        assert list(ROOT.glob(file.replace("NAME", "*"))), file


@pytest.mark.parametrize("probe", ENTRIES)
def test_the_name_of_an_entry_occurs_in_two_files_at_most(probe):
    files = [file for file, words in words_by_file().items() if ENTRIES[probe] in words]
    assert 1 <= len(files) <= 2, files


def test_the_page_has_the_colours_of_body_sides():
    style = (ROOT / "pose" / "web" / "static" / "style.css").read_text(encoding="utf-8")
    for side in ("left", "right"):
        red, green, blue = SIDE_COLOURS[side]
        assert f".side.{side} {{ background: rgb({red} {green} {blue});" in style
