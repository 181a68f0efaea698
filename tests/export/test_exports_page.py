"""docs/guides/exports.md and docs/studies/exports.md name every format and every angle."""

import re
from pathlib import Path

from pose.body.joint_angles import ALL_NAMES
from pose.export import FORMATS
from pose.export.mot import COLUMNS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / part / "exports.md").read_text(encoding="utf-8") for part in ("guides", "studies"))


def test_documentation_lists_every_format():
    rows = re.findall(r"^\| `([\w-]+)` \| (?:one|a folder)", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(FORMATS)


def test_documentation_lists_every_angle_sign():
    named = set(re.findall(r"`(\w+)`", PAGE))
    assert {re.sub("left_|right_", "", name) for name in ALL_NAMES} <= named
    assert {re.sub("_l$", "_r", name) for name in COLUMNS[1:]} <= named
