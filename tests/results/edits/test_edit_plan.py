"""Edits find the people they mean by time and place, whatever their ids, and change nothing else."""

import json
from dataclasses import replace

import numpy as np
import pytest
from mutations import damaged, one_line, other_value, quick_and_long, try_mutations

from pose.errors import UsageError
from pose.results.edits import parse_edits, read_edits, to_json, write_edits
from pose.results.edits.plan import KEY_S, EditPlan, StoredFrames
from pose.results.edits.types import (
    KINDS,
    Contact,
    Delete,
    Floor,
    Gravity,
    Height,
    Hidden,
    Joint,
    Keep,
    Merge,
    Place,
    Rename,
    Sides,
    Split,
    Swap,
)  # fmt: skip
from pose.structures.camera import Camera
from pose.structures.result_store import ResultStore
from pose.structures.skeletons import BLAZEPOSE33, COCO17
from pose.structures.types import FrameResult, People, Poses3D
from pose.utils.json_values import strict_json
from pose.world.clean import Steps

STEP = 1 / 15
COUNT = 30
CAMERA = Camera.of((640, 480))


def person(x, skeleton=COCO17):
    """Keypoints (J, 2) px of a person of 200 px who stands at x."""
    points = np.zeros((len(skeleton), 2), np.float32)
    heights = {"shoulder": 60, "hip": 120, "knee": 160, "ankle": 200, "elbow": 90, "wrist": 120}
    for joint, name in enumerate(skeleton.names):
        side = {"left": 12, "right": -12}.get(skeleton.side(joint), 0)
        points[joint] = x + side, 200 + next((y for part, y in heights.items() if part in name), 20)
    return points


def frame(index, people, skeleton=COCO17):
    """One frame with people by id: (x, score)."""
    points = np.array([person(x, skeleton) for x, _ in people.values()], np.float32).reshape(-1, len(skeleton), 2)
    scores = np.array([np.full(len(skeleton), score) for _, score in people.values()], np.float32)
    boxes = np.array([[x - 40, 200, x + 40, 400] for x, _ in people.values()], np.float32).reshape(-1, 4)
    return People(
        index, index * STEP, np.array(list(people), np.int64), boxes, np.ones(len(people), np.float32), points,
        scores.reshape(-1, len(skeleton)),
    )  # fmt: skip


def planned(edits, frames, skeleton=COCO17, **cameras):
    stored = ResultStore(None, skeleton)
    for people in frames:
        stored.write(FrameResult(people, Poses3D.unknown(len(people))))
    return EditPlan(edits, StoredFrames(stored), skeleton, CAMERA, **cameras)


def two(ids=(1, 2), skeleton=COCO17):
    return [frame(index, {ids[0]: (100 + index, 0.9), ids[1]: (400, 0.8)}, skeleton) for index in range(COUNT)]


def at(index, x):
    return Place(index * STEP, x, 290)


def ids(plan, frames):
    return [sorted(plan.apply(people).ids.tolist()) for people in frames]


def moved(plan, frames, place, x):
    """The id of the person at x in frame `place` after the edits."""
    people = plan.apply(frames[place])
    return int(people.ids[np.abs(people.boxes[:, 0] + 40 - x).argmin()])


def test_no_edit_changes_nothing():
    frames = two()
    plan = planned([], frames)
    assert all(plan.apply(people) is people for people in frames)


def test_ids_are_swapped_from_a_time_on_and_back_again():
    frames = two()
    plan = planned([Swap(at(10, 110), at(10, 400))], frames)
    assert moved(plan, frames, 9, 109) == 1
    assert moved(plan, frames, 10, 110) == 2
    assert moved(plan, frames, 29, 129) == 2
    again = planned([Swap(at(10, 110), at(10, 400)), Swap(at(20, 120), at(20, 400))], frames)
    assert [moved(again, frames, k, 100 + k) for k in (9, 15, 25)] == [1, 2, 1]


def test_edits_find_people_with_other_ids_and_other_networks():
    edits = [Swap(at(10, 110), at(10, 400)), Delete(at(20, 120)), Height(at(15, 400), 1.9), Rename(at(5, 105), "Anna")]
    for skeleton in (COCO17, BLAZEPOSE33):
        frames = two((7, 3), skeleton)
        plan = planned(edits, frames, skeleton)
        assert plan.problems == []
        # the person on the left is 7 until the swap and 3 afterwards, which is then deleted as a whole
        assert ids(plan, frames) == [[7]] * COUNT
        assert plan.settings({7: 2})["names"] == {"2": "Anna"}
        assert plan.steps(Steps()).corrections.heights == {7: 1.9}


def test_a_track_is_split_and_its_parts_are_not_joined_again():
    frames = two()
    plan = planned([Split(at(10, 110))], frames)
    assert ids(plan, frames) == [[1, 2]] * 10 + [[2, 3]] * 20
    assert plan.steps(Steps()).corrections.apart == {(1, 3)}
    assert ids(planned([Split(at(10, 110)), Merge(at(15, 115), at(5, 105))], frames), frames) == [[1, 2]] * COUNT


def test_merged_tracks_keep_the_better_row_of_each_frame():
    frames = [frame(k, {1: (100, 0.9)} if k < 10 else {1: (100, 0.2), 2: (104, 0.8)}) for k in range(COUNT)]
    plan = planned([Merge(Place(20 * STEP, 104, 290), Place(2 * STEP, 100, 290))], frames)
    assert plan.problems == []
    assert ids(plan, frames) == [[1]] * COUNT
    assert plan.apply(frames[20]).scores.mean() == pytest.approx(0.8)


def test_a_track_is_deleted_in_a_range_only():
    frames = two()
    plan = planned([Delete(at(10, 110), 14 * STEP)], frames)
    assert ids(plan, frames) == [[1, 2]] * 10 + [[2]] * 5 + [[1, 2]] * 15


def test_a_placed_joint_replaces_detections_around_it():
    frames = two()
    knee, ankle = COCO17.index("left_knee"), COCO17.index("left_ankle")
    plan = planned([Joint(at(10, 110), "left_knee", 222.5, 333)], frames)
    for index, people in enumerate(frames):
        edited, away = plan.apply(people), abs(index - 10) * STEP
        assert edited.scores[0, knee] == (1 if away == 0 else 0 if away <= KEY_S else np.float32(0.9))
        assert np.array_equal(edited.keypoints[1], people.keypoints[1])
        assert edited.scores[0, ankle] == np.float32(0.9)
    assert plan.apply(frames[10]).keypoints[0, knee].tolist() == [222.5, 333]
    assert frames[10].scores[0, knee] == np.float32(0.9), "the input is unchanged"


def test_a_placed_joint_makes_an_interpolated_frame_an_observation():
    frames = [replace(people, interpolated=np.full(2, people.index % 2 == 1)) for people in two()]
    plan = planned([Joint(at(11, 111), "left_knee", 222, 333)], frames)
    assert [len(plan.apply(people)) for people in frames[8:14]] == [2, 0, 2, 1, 2, 0]


@pytest.mark.parametrize(("skeleton", "joints"), [(COCO17, 2), (BLAZEPOSE33, 4)])
def test_a_limb_is_hidden_in_a_range(skeleton, joints):
    frames = two(skeleton=skeleton)
    plan = planned([Hidden(at(10, 110), "left_leg", 12 * STEP)], frames, skeleton)
    hidden = [int((plan.apply(people).scores[0] == 0).sum()) for people in frames]
    assert hidden == [0] * 10 + [joints] * 3 + [0] * 17
    names = np.array(skeleton.names)[plan.apply(frames[11]).scores[0] == 0]
    assert all(name.startswith("left_") and "hip" not in name for name in names)


def test_sides_are_given_by_place_so_that_a_swapped_detection_is_recognised():
    frames = two()
    crossed = [replace(people, keypoints=people.keypoints[:, list(COCO17.flip_order)]) for people in frames]
    edit = Sides(at(10, 110), "legs", 1.5, (122, 360), (98, 360))
    (given,), (other,) = planned([edit], frames).sides, planned([edit], crossed).sides
    assert (given.swapped, other.swapped, given.limbs, given.person) == (False, True, (0,), 1)


def test_what_is_said_about_the_world_reaches_its_settings():
    edits = [
        Height(at(5, 105), 1.9), Floor(at(5, 400), 0.4), Keep(at(5, 400)), Contact(at(5, 105), "right", False, 1.0),
        Gravity(0.5, (10, 10), (20, 400)), Height(at(6, 105), 1.8),
    ]  # fmt: skip
    said = planned(edits, two()).steps(Steps()).corrections
    assert said.heights == {1: 1.8}
    assert said.floors == {2: (pytest.approx(5 * STEP), 0.4)}
    assert said.kept == {2}
    assert (said.contacts[0].side, said.contacts[0].on, said.contacts[0].person) == (1, False, 1)
    assert len(said.lines) == 1
    later = said.renumbered({2: 1})
    assert later.floors.keys() == {1}
    assert later.kept == {1}


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (Delete(at(10, 250)), "no person is near (250, 290)"),
        (Delete(Place(99.0, 110, 290)), "no person is near"),
        (Swap(at(10, 110), at(10, 111)), "both places show the same person"),
        (Swap(at(10, 110), at(10, 600)), "no person is near (600, 290)"),
        (Joint(at(10, 110), "left_heel", 1, 2), "coco17 has no joint left_heel"),
        (Hidden(at(10, 110), "left_heel", 1.0), "coco17 has no joint left_heel"),
        (Gravity(0.5, (10, 10), (10, 11)), "shorter than 2 px"),
    ],
)
def test_an_edit_that_does_not_apply_is_reported_and_the_others_are_applied(edit, said):
    frames = two()
    plan = planned([edit, Delete(at(10, 400))], frames)
    assert len(plan.problems) == 1
    assert said in plan.problems[0]
    assert plan.problems[0].startswith("edit 1 (")
    assert ids(plan, frames) == [[1]] * COUNT


def test_a_plan_has_the_edits_of_its_camera_and_says_once_which_camera_is_missing():
    edits = [Rename(replace(at(3, 103), camera=camera), f"seen by {camera}") for camera in (1, 2, 9)]
    first, second = (planned(edits, two(), number=number, cameras=2) for number in (1, 2))
    assert (first.names, second.names) == ({1: "seen by 1"}, {1: "seen by 2"})
    assert first.problems == ["edit 3 (rename) is not applied: there is no camera 9"]
    assert second.problems == []
    whole, part = Delete(at(3, 103)), Delete(at(3, 103), until=1.0)
    plan = planned([whole], two(), cameras=2)
    assert (plan.deleted, plan.changes_frames) == ({1}, False)  # the fused person, not this camera's track
    assert planned([part], two(), cameras=2).changes_frames
    assert planned([whole], two()).changes_frames


HERE = Place(1.5, 320.25, 200.0)
ONE_OF_EACH = [
    Rename(HERE, "Anna Ærø"), Merge(HERE, Place(2.0, 10, 20)), Split(HERE), Swap(HERE, Place(1.5, 10, 20)),
    Delete(HERE), Delete(HERE, 2.0), Keep(HERE), Joint(HERE, "left_knee", 1, 2), Hidden(HERE, "right_arm", 3.0),
    Sides(HERE, "legs", 2.0, (1, 2), (3, 4)), Height(HERE, 1.82), Floor(HERE), Floor(HERE, 0.45),
    Gravity(0.0, (1, 2), (3, 400)), Contact(HERE, "left", True, 2.5),
]  # fmt: skip


def test_a_file_holds_every_kind_of_edit(tmp_path):
    assert {type(edit) for edit in ONE_OF_EACH} == set(KINDS.values())
    path = tmp_path / "edits.json"
    write_edits(path, ONE_OF_EACH)
    assert read_edits(path) == ONE_OF_EACH


GOOD = {"edit": "height", "person": {"time": 1, "x": 2, "y": 3}, "metres": 1.8}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"edit": "erase"}, "unknown kind 'erase'"),
        ({"edit": ["height"]}, "expected a string"),
        ({"metres": 18}, "out of range"),
        ({"metres": True}, "expected a number"),
        ({"metres": "1.8"}, "expected a number"),
        ({"metres": 10**400}, "moderate size"),
        ({"person": 1}, "expected an object"),
        ({"person": {"time": 1, "x": 2}}, "y is missing"),
        ({"person": {"time": -1, "x": 2, "y": 3}}, "out of range"),
        ({"person": {"time": 1, "x": 2, "y": 3, "z": 4}}, "unknown key 'z'"),
        ({"person": GOOD["person"] | {"camera": 0}}, "camera: 0 is out of range"),
        ({"person": GOOD["person"] | {"camera": 1.5}}, "camera: 1.5 is out of range"),
        ({"until": 3}, "unknown key 'until'"),
        ({"edit": "rename"}, "unknown key 'metres'"),
    ],
)
def test_an_invalid_edit_is_refused_in_one_line(change, said):
    content = {"format": "pose-edits", "version": 1, "edits": [GOOD, GOOD | change]}
    with pytest.raises(UsageError, match=said) as caught:
        parse_edits(content)
    assert str(caught.value).startswith("edit 2")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", " a", "a\nb", "<b>x</b>", "a\u202eb", "../x", "x" * 61, "a\0b", "\ud800"])
def test_a_hostile_name_is_refused(name):
    entry = {"edit": "rename", "person": GOOD["person"], "name": name}
    with pytest.raises(UsageError, match="is not a name") as caught:
        parse_edits({"format": "pose-edits", "version": 1, "edits": [entry]})
    assert str(caught.value).isprintable()


def test_a_camera_is_kept_and_two_places_are_of_one():
    there = Place(1.5, 320.25, 200.0, 2)
    swap = to_json([Swap(there, there), Keep(HERE)])
    assert [edit.get("other", {}).get("camera") for edit in swap["edits"]] == [2, None]
    assert parse_edits(swap) == [Swap(there, there), Keep(HERE)]
    with pytest.raises(UsageError, match="both places must be of one camera"):
        parse_edits(to_json([Swap(there, HERE)]))


def test_an_end_before_the_start_is_refused():
    content = to_json([Hidden(HERE, "right_arm", 1.0)])
    with pytest.raises(UsageError, match="until 1 s is before"):
        parse_edits(content)


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"format": "pose-edits"}', '{"format": "pose-edits", "version": 2, "edits": []}', "[" * 100_000,
     '{"format": "pose-edits", "version": 1, "edits": {}}', '{"format": "pose-edits", "version": 1, "edits": [NaN]}',
     '{"format": "pose-edits", "version": 1, "edits": [], "run": "rm"}'],
)  # fmt: skip
def test_a_file_of_something_else_is_refused_in_one_line(content, tmp_path):
    path = tmp_path / "edits.json"
    path.write_text(content)
    with pytest.raises(UsageError) as caught:
        read_edits(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_too_many_edits_are_refused():
    with pytest.raises(UsageError, match="maximum"):
        parse_edits({"format": "pose-edits", "version": 1, "edits": [GOOD] * 10_001})


@quick_and_long(30, 2000)
def test_mutated_files_give_edits_or_one_line(examples):
    content = json.dumps(to_json(ONE_OF_EACH)).encode()

    def check(data):
        try:
            parse_edits(strict_json(damaged(data, content)))
            parse_edits(other_value(data, json.loads(content)))
        except UsageError as error:
            one_line(error)
        except ValueError as error:  # not JSON
            one_line(error)

    try_mutations(check, examples)
