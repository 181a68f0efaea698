"""docs/guides/exports.md names every format and every angle."""

import re
from pathlib import Path

from pose.export import FORMATS
from pose.export.joint_angles import NAMES
from pose.export.mot import COLUMNS

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "exports.md").read_text(encoding="utf-8")


def test_every_format_has_a_row():
    rows = re.findall(r"^\| `(\w+)` \| (?:one|a folder)", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(FORMATS)


def test_every_angle_has_its_sign():
    named = set(re.findall(r"`(\w+)`", PAGE))
    assert {re.sub("left_|right_", "", name) for name in NAMES} <= named
    assert {re.sub("_l$", "_r", name) for name in COLUMNS[1:]} <= named
