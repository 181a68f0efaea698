"""Sixteen usual changes touch at most two files each; docs/architecture.md says which."""

import re
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


def test_the_page_has_the_colours_of_body_sides():
    style = (ROOT / "pose" / "web" / "static" / "style.css").read_text(encoding="utf-8")
    for side in ("left", "right"):
        red, green, blue = SIDE_COLOURS[side]
        assert f".side.{side} {{ background: rgb({red} {green} {blue});" in style
