"""Edits of 2D keypoints before lifting give what lifting the corrected keypoints gives."""

import json
from dataclasses import replace

import numpy as np
import pytest
from pose_apps.lift import main

import pose
from pose.errors import PoseWarning, UsageError
from pose.results.edits import Place, to_json
from pose.results.edits.types import Delete, Gravity, Merge, Rename, Sides, Swap
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import COCO17

COUNT = 40
TIMES = np.arange(COUNT) / 20


def walker(rng, x):
    """Keypoints (T, 17, 2) of a person of 250 px around x who moves a little."""
    body = rng.normal(0, 30, (17, 2)) * (1, 2.5)
    for joint, name in enumerate(COCO17.names):
        if any(part in name for part in ("hip", "shoulder")):
            body[joint] = (20 if name.startswith("left") else -20), (0 if "hip" in name else -90)
    sway = 10 * np.sin(2 * TIMES)[:, None] * rng.normal(0, 1, (1, 17))
    return Sequence2D(
        body + (x, 250) + sway[..., None], np.full((COUNT, 17), 0.9), TIMES, Camera.of((800, 500)), "coco17"
    )


@pytest.fixture
def people(rng):
    return {1: walker(rng, 200), 2: walker(rng, 600)}


def place(sequence, row):
    trunk = [COCO17.index(f"{side}_{part}") for side in ("left", "right") for part in ("hip", "shoulder")]
    x, y = sequence.keypoints[row, trunk].mean(axis=0).tolist()
    return Place(float(TIMES[row]), x, y)


def lifted(people, lifter, **options):
    return pose.lift(people, lifter=str(lifter), repair=False, fit=False, **options)


def test_swapped_ids_are_those_of_keypoints_swapped_by_hand(people, tiny_lifter):
    one, two = people.values()
    by_hand = {
        number: replace(own, keypoints=np.concatenate([own.keypoints[:20], other.keypoints[20:]]))
        for number, own, other in ((1, one, two), (2, two, one))
    }
    edited = lifted(people, tiny_lifter, edits=[Swap(place(one, 20), place(two, 20)), Rename(place(one, 0), "Anna")])
    assert np.array_equal(edited.joints(), lifted(by_hand, tiny_lifter).joints(), equal_nan=True)


def test_given_sides_are_those_of_keypoints_mirrored_by_hand(people, tiny_lifter):
    one, legs = people[1], [COCO17.index(f"{side}_knee") for side in ("left", "right")]
    left, right = one.keypoints[10, legs].tolist()
    order = np.arange(17)
    for part in ("hip", "knee", "ankle"):
        pair = [COCO17.index(f"{side}_{part}") for side in ("left", "right")]
        order[pair] = pair[::-1]
    by_hand = one.keypoints.copy()
    by_hand[10:21] = by_hand[10:21][:, order]
    edit = Sides(place(one, 10), "legs", float(TIMES[20]), tuple(right), tuple(left))
    edited = lifted({1: one}, tiny_lifter, edits=[edit])
    expected = lifted({1: replace(one, keypoints=by_hand)}, tiny_lifter)
    assert np.array_equal(edited.joints(), expected.joints())
    same = Sides(place(one, 10), "legs", float(TIMES[20]), tuple(left), tuple(right))
    assert np.array_equal(lifted({1: one}, tiny_lifter, edits=[same]).joints(), lifted({1: one}, tiny_lifter).joints())


def test_a_vertical_line_determines_gravity(people, tiny_lifter):
    tilt = np.radians(20)
    lines = [
        Gravity(0.5, (x - 100 * np.sin(tilt), 150.0), (x + 100 * np.sin(tilt), 150 + 200 * np.cos(tilt)))
        for x in (390.0, 410.0)
    ]
    edited = lifted(people, tiny_lifter, world=True, edits=lines)
    up = edited.table.world_info.world.up
    assert np.degrees(np.arctan2(up[0], -up[1])) == pytest.approx(-20, abs=4)


def test_edits_that_do_not_apply_or_leave_nobody_are_said(people, tiny_lifter):
    with pytest.warns(PoseWarning, match="no person is near"):
        lifted(people, tiny_lifter, edits=[Delete(Place(0.5, 5, 5))])
    everyone = [Delete(place(one, 5)) for one in people.values()]
    with pytest.raises(UsageError, match="delete all people"):
        lifted(people, tiny_lifter, edits=everyone)


def test_the_command_writes_the_people_that_are_left(people, tiny_lifter, tmp_path, capsys):
    frames = [
        {"image_id": row, "category_id": 1, "score": 1.0, "idx": number,
         "keypoints": np.column_stack([one.keypoints[row], one.scores[row]]).ravel().tolist()}
        for row in range(COUNT) for number, one in people.items()
    ]  # fmt: skip
    (tmp_path / "people.json").write_text(json.dumps(frames))
    merged = to_json([Merge(place(people[2], 5), place(people[1], 5))])
    (tmp_path / "edits.json").write_text(json.dumps(merged))
    call = [str(tmp_path / "people.json"), "--fps", "20", "--image-size", "800x500", "--lifter", str(tiny_lifter)]
    assert main([*call, "--out", str(tmp_path / "one.npz"), "--edits", str(tmp_path / "edits.json")]) in (0, None)
    assert [path.name for path in tmp_path.glob("*.npz")] == ["one.npz"]
    assert main([call[0], *call, "--edits", str(tmp_path / "edits.json")]) == 2
    assert "give one input" in capsys.readouterr().err
