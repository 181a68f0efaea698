"""`pose-mcp`: the tools as a client of the protocol calls them."""

import asyncio
import json

import numpy as np
import pytest
from command_errors import error_line
from pose_apps.mcp_server import main, make_server
from pose_fakes import STANDING, run_info, seen_result

from pose.results import NpzWriter
from pose.structures.skeletons import H36M17


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "inside"
    (inside / "clip-pose").mkdir(parents=True)
    with NpzWriter(inside / "clip-pose" / "poses.npz", run_info(H36M17)) as writer:
        for at in range(20):
            writer.write(seen_result([(0, 0, 4.0), (1, 0, 4.0)], STANDING, at, at / 10))
    (tmp_path / "secret.npz").write_bytes(b"secret")
    return inside


def called(folder, name, **arguments):
    from mcp import Client

    async def call():
        async with Client(make_server(folder)) as client:
            return await client.call_tool(name, arguments)

    answer = asyncio.run(call())
    text = answer.content[0].text
    return text if answer.is_error else json.loads(text)


def test_there_are_five_tools_with_descriptions(folder):
    from mcp import Client

    async def listed():
        async with Client(make_server(folder)) as client:
            return (await client.list_tools()).tools

    tools = asyncio.run(listed())
    assert [tool.name for tool in tools] == ["run", "list_people", "angles", "events", "export"]
    assert all(tool.description for tool in tools)


def test_people_and_angles_of_a_result(folder):
    people = called(folder, "list_people", result="clip-pose")
    assert [one["id"] for one in people["people"]] == [1, 2]
    assert people["people"][0] | {"height_m": None} == {
        "id": 1, "first_s": 0, "last_s": 1.9, "frames": 20, "height_m": None, "doubtful": False
    }  # fmt: skip
    summary = called(folder, "angles", result="clip-pose", person=1)["degrees"]
    assert summary["left_knee_flexion"]["mean"] == pytest.approx(0, abs=0.1)
    series = called(folder, "angles", result="clip-pose", person=2, angle="trunk_lean")
    assert len(series["times_s"]) == len(series["degrees"]) == 20
    np.testing.assert_allclose(series["times_s"], np.arange(20) / 10, atol=1e-3)


def test_export_writes_into_the_folder_of_the_result(folder):
    files = called(folder, "export", result="clip-pose", formats=["bvh"])["files"]
    assert files == ["clip-pose/poses-person1.bvh", "clip-pose/poses-person2.bvh"]
    assert (folder / files[0]).read_text().startswith("HIERARCHY")


def test_events_need_a_world(folder):
    assert "world" in called(folder, "events", result="clip-pose", person=1)


@pytest.mark.parametrize("name", ["../secret.npz", "/etc/passwd", "clip-pose/../../secret.npz", "link"])
def test_paths_outside_the_folder_are_refused(folder, name):
    (folder / "link").symlink_to(folder.parent)
    for tool, arguments in (
        ("list_people", {"result": name}), ("angles", {"result": name, "person": 1}), ("run", {"video": name}),
        ("events", {"result": name, "person": 1}), ("export", {"result": name, "formats": ["csv"]}),
    ):  # fmt: skip
        assert f"{name}: is outside the folder of this server" in called(folder, tool, **arguments)
    assert [one.name for one in folder.parent.iterdir()] != []
    assert not list(folder.parent.glob("*.csv"))


def test_a_link_out_of_a_result_folder_is_refused(folder):
    (folder / "other").mkdir()
    (folder / "other" / "poses.npz").symlink_to(folder.parent / "secret.npz")
    assert "is outside the folder" in called(folder, "list_people", result="other")


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("list_people", {"result": "nothing"}, "nothing: no such result"),
        ("run", {"video": "none.mp4"}, "none.mp4: no such video; there are: none"),
        ("run", {"video": "clip-pose/poses.npz"}, "no such video"),
        ("angles", {"result": "clip-pose", "person": 9}, "9"),
        ("angles", {"result": "clip-pose", "person": 1, "angle": "nose"}, "angle 'nose' is unknown"),
        ("events", {"result": "clip-pose", "person": 9}, "person 9 is not in the result; it has 1, 2"),
        ("export", {"result": "clip-pose", "formats": ["docx"]}, "unknown format 'docx'"),
    ],
)
def test_wrong_arguments_are_errors_of_one_line(folder, tool, arguments, words):
    answer = called(folder, tool, **arguments)
    assert words in answer
    assert "\n" not in answer


def test_a_missing_folder_is_a_usage_error(tmp_path, capsys):
    assert main([str(tmp_path / "none")]) == 2
    assert "no such folder" in error_line(capsys)


@pytest.mark.slow
def test_run_makes_a_result(folder, videos, weights_dir, monkeypatch):
    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
    (folder / "squats.mp4").write_bytes((videos / "squats.mp4").read_bytes())
    answer = called(folder, "run", video="squats.mp4", end=0.5)
    assert answer["result"] == "squats-pose"
    assert answer["people"]
    assert (folder / "squats-pose" / "poses.npz").is_file()
    events = called(folder, "events", result="squats-pose", person=answer["people"][0]["id"])
    assert events["left_out"] == 0
    assert all(set(one) == {"time_s", "event", "side"} for one in events["events"])
