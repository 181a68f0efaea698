"""docs/guides/exports.md and docs/studies/exports.md name every format and every angle."""

import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pose.body.joint_angles import ALL_NAMES
from pose.export import FORMATS, export
from pose.export.mot import COLUMNS
from pose.structures.skeletons import BLAZEPOSE33
from pose.structures.types import Placed

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "".join((DOCS / part / "exports.md").read_text(encoding="utf-8") for part in ("guides", "studies"))


def test_every_format_has_a_row():
    rows = re.findall(r"^\| `([\w-]+)` \| (?:one|a folder)", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(FORMATS)


def test_every_angle_has_its_sign():
    named = set(re.findall(r"`(\w+)`", PAGE))
    assert {re.sub("left_|right_", "", name) for name in ALL_NAMES} <= named
    assert {re.sub("_l$", "_r", name) for name in COLUMNS[1:]} <= named


def claims() -> dict[str, dict[str, str]]:
    """The table of what each format holds: the cell of each column, by format."""
    table = re.search(r"^\| format \| body.*?(?=^$)", PAGE, re.MULTILINE | re.DOTALL)[0]
    header, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in table.strip().splitlines())
    held = {}
    for names, *cells in rows:
        for name in re.findall(r"`([\w-]+)`", names):
            held[name] = dict(zip(header[1:], cells, strict=True))
    return held


def test_the_table_of_contents_names_every_format():
    assert sorted(claims()) == sorted(FORMATS)


@pytest.fixture
def results(save, body, rng):
    """Tables of the same people, of which one differs from "all" in one thing."""
    from export_fakes import wave

    from pose.body.skeleton import joint_positions
    from pose.results import load_poses

    table = load_poses(save(joint_positions(body, wave(6, rng))[None]))
    rows = len(table.id)
    points = np.cumsum(0.02 * rng.standard_normal((2, 2, 21, 3)), axis=2).astype(np.float32)
    points -= points[:, :, :1]
    faces = (200 + 40 * rng.standard_normal((2, 468, 3))).astype(np.float32)
    world = np.zeros((rows, 17, 3), np.float32)
    none = np.zeros(rows, np.float32)
    contacts = np.where(np.arange(rows)[:, None] < rows // 2, *np.float32([[0.9, 0.1], [0.1, 0.9]]))
    placed = Placed(world, none, contacts, np.zeros(rows, bool), none)
    full = table.with_columns(
        hand_keypoints=np.tile(100 + 500 * points[0, ..., :2], (rows, 1, 1, 1)),
        hand_scores=np.full((rows, 2, 21), 0.9, np.float32),
        hand_joints3d=np.tile(points[0], (rows, 1, 1, 1)),
        **placed.arrays(),
    )
    run = full.run
    wide = replace(run, camera=replace(run.camera, matrix=run.camera.matrix * [[1.5], [1.5], [1]]))
    seen = {"face_keypoints": np.tile(faces[0], (rows, 1, 1)), "face_scores": np.ones(rows, np.float32)}
    other = {"face_keypoints": np.tile(faces[1], (rows, 1, 1)), "face_scores": np.ones(rows, np.float32)}
    feet, scores = np.full((rows, 33, 2), 400, np.float32), np.ones((rows, 33), np.float32)
    standing = replace(full, skeleton=BLAZEPOSE33).with_columns(keypoints=feet, scores=scores)
    moved = feet.copy()
    moved[:, 31:] += 40  # toes
    keypoints = np.tile(100 + 500 * points[1, ..., :2], (rows, 1, 1, 1))
    return {
        "hands": (full, full.with_columns(hand_joints3d=np.tile(points[1], (rows, 1, 1, 1)), hand_keypoints=keypoints)),
        "face": (full.with_columns(**seen), full.with_columns(**other)),
        "contacts": (full, full.with_columns(contacts=placed.contacts[:, ::-1].copy())),
        "camera": (full, replace(full, run=wide)),
        "heels, toes": (standing, standing.with_columns(keypoints=moved)),
        "sigma": (full, full.with_columns(sigma=table.sigma * 2)),
    }


# Recordings of Rerun hold random ids, and FBX needs Blender.
@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {"rrd", "fbx"}))
def test_the_table_says_what_a_format_holds(results, name, tmp_path):
    """A thing is held where the file changes with it."""
    if any(find_spec(module) is None for module in FORMATS[name].modules):
        pytest.skip(f"needs the extra [{FORMATS[name].extra}]")
    from pose.body.tracks import Recording

    said = claims()[name]
    for thing, tables in results.items():
        written = []
        for table in tables:
            folder = tmp_path / f"{thing}{len(written)}"
            folder.mkdir()
            made = export(Recording(table, "clip.mp4"), [name], folder, "poses")
            parts = sorted(part for one in made for part in ([one.path] if one.path.is_file() else one.path.rglob("*")))
            written.append(b"".join(part.read_bytes() for part in parts))
        assert (written[0] != written[1]) == bool(said[thing]), thing
