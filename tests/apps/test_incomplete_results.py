"""An incomplete result does not replace a complete one, and is itself replaced."""

import json

import pytest
from pose_apps.support.outputs import UNFINISHED, plan_outputs


def settled(folder, content: str, complete: bool) -> None:
    outputs = plan_outputs("clip.mp4", str(folder), "json", overlay=False)
    with outputs.ready_folder() as written:
        text = json.dumps({"frames": [content]})[:-1] + f',\n"complete": {str(complete).lower()}}}\n'
        written.files["json"].write_text(text)
        outputs.settle(written, complete=complete)


def content_of(path) -> str:
    return json.loads(path.read_text())["frames"][0]


@pytest.mark.parametrize("first", [True, False])
def test_an_incomplete_result_replaces_only_an_incomplete_one(tmp_path, first):
    settled(tmp_path, "first", first)
    settled(tmp_path, "second", False)
    assert content_of(tmp_path / "poses.json") == ("first" if first else "second")
    assert (tmp_path / UNFINISHED / "poses.json").exists() == first
    settled(tmp_path, "third", True)
    assert content_of(tmp_path / "poses.json") == "third"
