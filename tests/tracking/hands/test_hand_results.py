"""Hands in results: on the body, in files, and in other programs' formats."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from pose_fakes import run_info, seen_result

import pose
from pose.body.fingers import FINGER_NAMES, FINGER_PARENTS, hand_quaternions
from pose.errors import UsageError
from pose.export.result import Result
from pose.results import JsonWriter, NpzWriter, load_poses
from pose.results.json import SCHEMA_PATH
from pose.structures import rotations
from pose.structures.hand_points import (
    ELBOWS,
    HAND_PER_FOREARM,
    LEFT_NAMES,
    POINTS,
    WRISTS,
    Hands,
    lengths,
    sized_to_body,
)
from pose.structures.result_store import ResultStore
from pose.structures.skeletons import H36M17


def shape(rng, side=0, turn=None):
    """(21, 3) m of a hand with bent fingers, in file axes: outward along x, palm down."""
    outward = 1.0 if side == 0 else -1.0
    points = np.zeros((POINTS, 3))
    for finger in range(5):
        points[4 * finger + 1] = (0.09 * outward, 0, 0.03 - 0.015 * finger)
        for part in range(1, 4):
            step = np.array([0.03 * outward, -0.01 * part - 0.005 * rng.random(), 0.004 * (2 - finger)])
            points[4 * finger + part + 1] = points[4 * finger + part] + step
    return points if turn is None else rotations.rotate(turn, points)


@pytest.fixture
def frames(rng):
    """Ten frames of a person; the left hand is not seen in the first three, the right never."""
    results = []
    for index in range(10):
        result = seen_result([(0, 0, 4)], index=index, time=index / 25)
        hands = Hands.unknown(1)
        if index >= 3:
            hands.shapes[0, 0] = shape(rng)
            hands.points[0, 0] = 300 + 200 * hands.shapes[0, 0, :, :2]
            hands.scores[0, 0] = 0.9
        results.append(replace(result, people=replace(result.people, hands=hands)))
    return results


@pytest.fixture
def info():
    said = run_info(H36M17)
    return replace(said, settings={**said.settings, "hands": True})


@pytest.fixture
def path(tmp_path, frames, info):
    with NpzWriter(tmp_path / "poses.npz", info) as writer:
        for frame in frames:
            writer.write(frame)
    return tmp_path / "poses.npz"


def test_hand_size_follows_the_forearm(frames):
    people, poses = frames[5].people, frames[5].poses
    joints = sized_to_body(people.hands, poses.joints, np.zeros((1, 2), bool))
    forearm = np.linalg.norm(poses.joints[0, WRISTS] - poses.joints[0, ELBOWS], axis=1).mean()
    assert lengths(joints)[0, 0] == pytest.approx(HAND_PER_FOREARM * forearm, rel=1e-5)
    assert np.isnan(joints[0, 1]).all()
    swapped = sized_to_body(people.hands, poses.joints, np.array([[False, True]]))
    np.testing.assert_array_equal(swapped[0, 1], joints[0, 0])
    assert np.isnan(swapped[0, 0]).all()


def test_files_round_trip_hands(path, frames):
    table = load_poses(path)
    for position, frame in enumerate(frames):
        again = table[position]
        np.testing.assert_array_equal(again.people.hands.points, frame.people.hands.points)
        np.testing.assert_array_equal(again.people.hands.scores, frame.people.hands.scores)
        swapped = frame.poses.swapped
        before, after = (sized_to_body(one.people.hands, one.poses.joints, swapped) for one in (frame, again))
        np.testing.assert_allclose(after, before, atol=1e-6)


def test_hands_of_swapped_arms_round_trip_as_observed(tmp_path, frames, info):
    frame = replace(frames[5], poses=replace(frames[5].poses, swapped=np.array([[False, True]])))
    with NpzWriter(tmp_path / "poses.npz", info) as writer:
        writer.write(frame)
    table = load_poses(tmp_path / "poses.npz")
    assert np.isfinite(table.hand_joints3d[0, 1]).all()
    assert np.isnan(table.hand_joints3d[0, 0]).all()
    assert table[0].people.hands.detected[0].tolist() == [True, False]
    assert table[0].people.hands.shapes[0, 0].any()


def test_file_without_hands_has_none(tmp_path, frames):
    with NpzWriter(tmp_path / "poses.npz", run_info(H36M17)) as writer:
        writer.write(replace(frames[0], people=replace(frames[0].people, hands=None)))
    result = pose.load(tmp_path / "poses.npz")
    assert result.table.hand_keypoints is None
    with pytest.raises(UsageError, match="pose-run --hands"):
        result.hands()


def test_json_contains_detected_hands(tmp_path, frames, info):
    with JsonWriter(tmp_path / "poses.json", info) as writer:
        for frame in frames:
            writer.write(frame)
    document = json.loads((tmp_path / "poses.json").read_text())
    Draft202012Validator(json.loads(SCHEMA_PATH.read_text())).validate(document)
    people = [frame["people"][0] for frame in document["frames"]]
    assert ["hands" in person for person in people] == [False] * 3 + [True] * 7
    assert people[5]["hands"].keys() == {"left"}
    np.testing.assert_allclose(
        np.array(people[5]["hands"]["left"]["keypoints"])[:, :2], frames[5].people.hands.points[0, 0], atol=0.01
    )


def test_stored_results_round_trip_hands(frames):
    store = ResultStore(None, H36M17)
    store.write(frames[5])
    store.write(replace(frames[5], people=replace(frames[5].people, hands=None)))
    np.testing.assert_array_equal(store[0].people.hands.shapes, frames[5].people.hands.shapes)
    assert store[1].people.hands is None


def test_the_python_api_puts_hands_on_the_lifted_wrist(path):
    result = pose.load(path)
    hands, joints = result.hands(), result.joints()
    assert hands.shape == (1, 10, 2, 21, 3)
    assert np.isnan(hands[0, :3]).all()
    np.testing.assert_allclose(hands[0, 3:, 0, 0], joints[0, 3:, WRISTS[0]], atol=1e-6)
    assert result.hand_scores()[0, :, 0].tolist() == pytest.approx([0] * 3 + [0.9] * 7)
    assert isinstance(result, Result)


def test_exports_contain_the_hands(path, tmp_path, frames):
    out = tmp_path / "out"
    pose.convert(path, ["csv", "coco", "openpose", "bvh"], out, space="camera")
    with (out / "poses.csv").open() as file:
        rows = list(csv.DictReader(file))
    of_hand = [row for row in rows if row["joint"] in LEFT_NAMES]
    assert len(rows) == 10 * 17 + 7 * POINTS
    assert {int(row["frame"]) for row in of_hand} == set(range(3, 10))
    wrist = next(row for row in rows if row["joint"] == "left_wrist" and row["frame"] == "4")
    root = next(row for row in of_hand if row["joint"] == "left_hand_root" and row["frame"] == "4")
    assert [root[axis] for axis in "xyz"] == [wrist[axis] for axis in "xyz"]
    coco = json.loads((out / "poses-coco.json").read_text())
    assert len(coco[4]["lefthand_kpts"]) == 63
    assert not any(coco[4]["righthand_kpts"])
    first, *_, last = sorted((out / "poses-openpose").iterdir())
    left = json.loads(last.read_text())["people"][0]["hand_left_keypoints_2d"]
    np.testing.assert_allclose(np.reshape(left, (21, 3))[:, :2], frames[-1].people.hands.points[0, 0], atol=0.01)
    assert not any(json.loads(first.read_text())["people"][0]["hand_left_keypoints_2d"])
    text = (out / "poses-person1.bvh").read_text()
    assert text.count("JOINT left_") == text.count("JOINT right_") == 6 + 15
    numbers = text.split("Frame Time")[1].splitlines()[1:]
    assert {len(line.split()) for line in numbers} == {3 + 3 * 47}


@pytest.mark.parametrize("side", [0, 1])
def test_finger_rotations_reproduce_bone_directions(rng, side):
    turn = rotations.about(np.array([0.6, 0.0, 0.8]), np.array(0.7))
    places = np.full((1, 2, POINTS, 3), np.nan)
    places[0, side] = shape(rng, side, turn)
    turns = hand_quaternions(places, np.tile(rotations.IDENTITY, (1, 2, 1)))
    assert np.isnan(turns[0, 1 - side]).all()
    np.testing.assert_allclose(np.abs(rotations.dot(turns[0, side, 0], turn)), 1, atol=1e-6)
    whole = [turns[0, side, 0]]
    for at in range(len(FINGER_NAMES)):
        whole.append(rotations.multiply(whole[FINGER_PARENTS[at]], turns[0, side, at + 1]))
        finger, part = divmod(at, 3)
        outward = np.array([1.0 if side == 0 else -1.0, 1, 1])
        rest = np.array([np.cos(np.radians(40)), 0, np.sin(np.radians(40))] if finger == 0 else [1.0, 0, 0]) * outward
        bone = places[0, side, 4 * finger + part + 2] - places[0, side, 4 * finger + part + 1]
        np.testing.assert_allclose(rotations.rotate(whole[-1], rest), bone / np.linalg.norm(bone), atol=1e-6)
