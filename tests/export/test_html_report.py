"""The report page: whole in itself, and its numbers those of the result."""

import base64
import json
import re

import numpy as np
import pytest

from pose.body.character.look import character_of
from pose.body.character.posing import pose_character, skin
from pose.body.joint_angles import NAMES, joint_angles
from pose.body.soles import smooth_feet
from pose.export import export
from pose.structures import rotations
from pose.structures.skeletons import LIMBS
from pose.structures.types import Placed

GAPS = np.ones((2, 60), bool)
GAPS[0, :7] = GAPS[0, 20:25] = False


def report(recording, folder, people=None):
    (made,) = export(recording, ["html"], folder, "poses", people)
    return made.path.read_text(encoding="utf-8"), made


def script(page, identity):
    return re.search(rf'<script type="[\w/]+" id="{identity}">(.*?)</script>', page, re.DOTALL)[1]


def numbers(page, identity, width):
    parts = [np.frombuffer(base64.b64decode(part), "<i2") for part in script(page, identity).split(" ")]
    return np.concatenate(parts).reshape(-1, width)


def test_report_page_loads_no_external_resources(recorded, tmp_path):
    page, _ = report(recorded(60, 2)[0], tmp_path)
    assert re.findall(r'(?:src|href)="(?!data:)[^"]*"', page) == []
    modules = json.loads(re.search(r'<script type="importmap">(.*?)</script>', page)[1])["imports"]
    code = {name: base64.b64decode(source.partition(",")[2]).decode() for name, source in modules.items()}
    wanted = {name for text in code.values() for name in re.findall(r'from "([^"]+)"', text)}
    assert wanted <= set(code), "every module that another one imports is in the page"
    assert not any("fetch(" in text or "://" in text for text in code.values())


def test_report_numbers_equal_the_result(recorded, tmp_path):
    recording, places = recorded(60, 2, present=GAPS)
    page, _ = report(recording, tmp_path)
    facts = json.loads(script(page, "facts"))
    assert [(p["id"], p["first"], p["count"], p["frames"]) for p in facts["people"]] == [(1, 7, 53, 48), (2, 0, 60, 60)]
    nothing = {"frames": 0, "spans": []}
    gap = {"frames": 5, "spans": [[round(20 / 30, 4), round(25 / 30, 4)]]}
    limbs = {f"inconsistent_{limb}" for limb in LIMBS}
    unmarked = dict.fromkeys(["missing", "filled", "legs", "arms", *limbs], nothing)
    assert facts["people"][0]["marks"] == unmarked | {"missing": gap}
    assert facts["people"][1]["marks"] == unmarked
    np.testing.assert_allclose(np.frombuffer(base64.b64decode(facts["times"])), np.arange(60) / 30)
    stage = numbers(page, "p1-stage", 51)
    known = GAPS[0, 7:]
    assert (stage[~known] == -32768).all()
    sigma = numbers(page, "p1-sigma", 17)
    assert (sigma[known] == 30).all()
    assert (sigma[~known] == -32768).all()
    # A turn and a floor away from the joints that went in: distances stay.
    got = stage[known].reshape(-1, 17, 3)
    between = np.linalg.norm(got[:, 3] - got[:, 10], axis=1)
    expected = np.linalg.norm(places[0, 7:][known][:, 3] - places[0, 7:][known][:, 10], axis=1)
    np.testing.assert_allclose(between / 1000, expected, atol=2e-3)
    angles = joint_angles(places[1], np.full((60, 17), 30.0), np.array([0, 1.0, 0]))
    column = NAMES.index("left_knee_flexion")
    np.testing.assert_allclose(numbers(page, "p2-angles", 16)[:, column] / 10, angles.degrees[:, column], atol=0.06)
    np.testing.assert_allclose(
        numbers(page, "p2-deviations", 16)[:, column] / 10, angles.deviations[:, column], atol=0.06
    )
    lines = numbers(page, "p2-lines", 4)
    assert (lines[:, 2] == 900).all()
    step = np.linalg.norm(places[1, 33, 0] - places[1, 27, 0]) / (6 / 30)
    assert lines[30, 0] / 1000 == pytest.approx(step, abs=0.05)


def test_small_video_is_embedded_and_large_one_linked(recorded, tmp_path, monkeypatch):
    recording, _ = recorded(60)
    (tmp_path / "overlay.mp4").write_bytes(b"0123456789")
    page, made = report(recording, tmp_path)
    assert json.loads(script(page, "video-facts")) == {
        "source": "data:video/mp4;base64,MDEyMzQ1Njc4OQ==",
        "offset": 0.0,
    }
    assert "contains the video" in made.notes
    monkeypatch.setattr("pose.export.html.MAX_EMBEDDED_BYTES", 5)
    page, made = report(recording, tmp_path)
    assert json.loads(script(page, "video-facts"))["source"] == "overlay.mp4"
    assert "plays overlay.mp4" in made.notes


def test_file_names_are_escaped_in_the_page(save, body, rng, tmp_path):
    from export_fakes import wave

    from pose.body.skeleton import joint_positions
    from pose.body.tracks import Selection
    from pose.results import load_poses

    table = load_poses(save(joint_positions(body, wave(5, rng))[None]))
    page, _ = report(Selection(table, "</script><script>alert(1)</script>.mp4"), tmp_path)
    assert "alert(1)</script>" not in page
    assert page.count("<script") == page.count("</script>")


def test_long_result_is_subsampled_with_a_note(recorded, tmp_path, monkeypatch):
    monkeypatch.setattr("pose.export.html.MAX_FRAMES", 25)
    present = np.ones((1, 60), bool)
    present[0, 10:12] = False  # between two frames that are kept
    recording, _ = recorded(60, present=present)
    recording.table.swapped[30, 1] = True  # in frame 32
    filled = np.isin(np.arange(58), [40, 41, 42])  # frames 42 to 44
    numbers = np.zeros((58, 1), np.float32)
    placed = Placed(
        np.zeros((58, 17, 3), np.float32), numbers[:, 0], np.repeat(numbers, 2, axis=1), filled, numbers[:, 0]
    )
    recording.table = recording.table.with_columns(**placed.arrays())
    page, made = report(recording, tmp_path)
    (person,) = json.loads(script(page, "facts"))["people"]
    assert (person["count"], person["frames"]) == (20, 55)
    assert "20 of 60 frames" in made.notes
    assert person["marks"]["missing"] == {"frames": 2, "spans": [[round(10 / 30, 4), round(12 / 30, 4)]]}
    assert person["marks"]["filled"] == {"frames": 3, "spans": [[round(42 / 30, 4), round(45 / 30, 4)]]}
    assert person["marks"]["arms"] == {"frames": 1, "spans": [[round(32 / 30, 4), round(33 / 30, 4)]]}


def test_result_without_people_gives_a_report(save, tmp_path):
    from pose.export import open_selection

    recording = open_selection(save(np.zeros((1, 5, 17, 3)), present=np.zeros((1, 5), bool)))
    page, _ = report(recording, tmp_path)
    assert json.loads(script(page, "facts"))["people"] == []


def test_report_bodies_equal_the_character(recorded, tmp_path):
    """What the page computes of its numbers, here with numpy: the vertices of the posed character."""
    recording, _ = recorded(60, 2, present=GAPS)
    page, _ = report(recording, tmp_path)
    mesh = json.loads(script(page, "mesh"))
    moving, parents = mesh["moving"]["1"], mesh["parents"]
    rest = numbers(page, "p1-rest", 3) * mesh["unit"]
    rows = numbers(page, "p1-turns", 3 + 3 * len(moving)).astype(float)
    known = GAPS[0, 7:]
    assert (rows[~known] == -32768).all()
    frame = 40
    heads, vertices = rest[: len(parents)], rest[len(parents) :]
    turns = np.tile([1.0, 0, 0, 0], (len(parents), 1))
    turns[moving, 1:] = rows[frame, 3:].reshape(-1, 3) / mesh["turn"]
    turns[:, 0] = np.sqrt(1 - (turns[:, 1:] ** 2).sum(axis=1))
    whole, places = turns.copy(), heads.copy()
    places[0] = rows[frame, :3] / 1000
    for bone, parent in enumerate(parents[1:], start=1):
        whole[bone] = rotations.multiply(whole[parent], turns[bone])
        places[bone] = places[parent] + rotations.rotate(whole[parent], heads[bone] - heads[parent])
    bones = np.frombuffer(base64.b64decode(mesh["bones"]), np.uint8).reshape(-1, 4)
    weights = np.frombuffer(base64.b64decode(mesh["weights"]), "<u2").reshape(-1, 4) / 65535
    moved = rotations.rotate(whole[bones], vertices[:, None] - heads[bones]) + places[bones]
    got = (weights[..., None] * moved).sum(axis=1)
    track = recording.track(1, recording.timeline)
    character = character_of(track, "light")
    feet = smooth_feet(track, np.arange(len(track)), recording.world)[[frame]]
    places = recording.world.to_file(track.read(np.array([frame])).joints)
    posed = pose_character(character, places, feet=feet)
    np.testing.assert_allclose(got, skin(character, posed, 0), atol=2e-3)
    triangles = np.frombuffer(base64.b64decode(mesh["triangles"]), "<u2")
    assert triangles.max() < len(vertices) == len(bones)
