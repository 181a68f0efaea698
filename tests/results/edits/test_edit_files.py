"""Files of edits: what is written is read back, and anything else is refused in one line."""

import json

import pytest
from mutations import damaged, one_line, other_value, quick_and_long, try_mutations

from pose.errors import UsageError
from pose.results.edits import parse_edits, read_edits, to_json, write_edits
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
from pose.utils.json_values import strict_json

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
