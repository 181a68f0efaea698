"""`pose-batch` with groups of videos of the same moment."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pose_apps.batch.clips import find_clips
from pose_apps.batch.command import main
from pose_apps.cameras.command import CamerasOutcome
from pose_apps.support.summary import Tally

from pose.errors import PoseError
from pose.results.cameras import ResultCamera


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())


def groups(inputs, out, *, grouped=True):
    return {clip.name: [Path(video).name for video in clip.videos] for clip in find_clips(inputs, out, grouped=grouped)}


def test_each_folder_forms_one_camera_group(tmp_path):
    touch(tmp_path / "in", "top.mp4", "day/a.mp4", "day/b.MOV", "day/2/c.mkv", "frames/1.png", "day/notes.txt")
    found = groups([str(tmp_path / "in")], tmp_path / "out")
    assert found == {"in": ["top.mp4"], "day": ["a.mp4", "b.MOV"], "day/2": ["c.mkv"]}
    assert groups([str(tmp_path / "in" / "day" / "a.mp4")], tmp_path / "out") == {"a": ["a.mp4"]}


def test_tab_in_a_clip_list_names_the_camera_group(tmp_path):
    touch(tmp_path, "a.mp4", "b.mp4", "c.mp4", "d.mp4")
    (tmp_path / "list.txt").write_text("a.mp4\tmoment 1\nc.mp4\nb.mp4\tmoment 1\ngone.mp4\t../2\nd.mp4\t../2\n")
    found = groups([str(tmp_path / "list.txt")], tmp_path / "out", grouped=False)
    assert found == {"c": [], "moment 1": ["a.mp4", "b.mp4"], "_2": ["gone.mp4", "d.mp4"]}
    signature = find_clips([str(tmp_path / "list.txt")], tmp_path / "out")[1].signature()
    assert signature[:2] == [2, 10]


@pytest.fixture
def processed(monkeypatch):
    """Groups are only noted: what `pose-run` makes of several videos has tests of its own."""
    calls = []

    def process(videos, cameras, config, networks, host):
        calls.append((videos, cameras.cameras))
        if "bad" in videos[0]:
            raise PoseError(f"{videos[0]}: its motion matches no other camera's\nat all")
        out = Path(config.out)
        out.mkdir(parents=True, exist_ok=True)
        (out / "poses.json").write_text("{}")
        camera = ResultCamera(
            "a", (64, 48), np.eye(3), (0.0, 0.0), np.eye(3), np.zeros(3), 0.0, 0.0, 0.0, 0.1, 0.0, float("nan"), None
        )
        tally = Tally(frames=3, ids={1, 2}, last_time=1.0)
        filmed = [replace(camera, video=video) for video in videos]
        return CamerasOutcome(tally, [out / "poses.json"], [], [], filmed, (64, 48), 30.0, "nothing")

    monkeypatch.setattr("pose_apps.batch.work.process_cameras", process)
    monkeypatch.setattr("pose_apps.batch.work.Worker._key", lambda self, clip: f"{clip.name} of {self._job.key}")
    return calls


@pytest.mark.usefixtures("at_hand", "in_this_process")
def test_camera_groups_are_listed_and_resumed(processed, tmp_path, capsys):
    touch(tmp_path / "in", "good/a.mp4", "good/b.mp4", "bad/a.mp4", "bad/b.mp4", "single/a.mp4")
    call = [str(tmp_path / "in"), "--cameras", "auto", "--out", str(tmp_path / "out")]
    assert main(call) == 1
    lines = {line["name"]: line for line in map(json.loads, (tmp_path / "out/manifest.jsonl").read_text().splitlines())}
    assert {name: line["status"] for name, line in lines.items()} == {"good": "ok", "bad": "failed", "single": "failed"}
    assert lines["bad"]["error"].endswith("bad/a.mp4: its motion matches no other camera's at all")
    assert "only one video; expected 2 to 8" in lines["single"]["error"]
    good = lines["good"]
    assert (good["people"], good["frames"], good["outputs"]) == (2, 3, ["good/poses.json"])
    assert [camera["position_sigma"] for camera in good["cameras"]] == [0.1, 0.1]
    assert good["cameras"][1]["video"].endswith("good/b.mp4")
    assert good["cameras"][0]["residual_px"] is None
    assert "2 failed" in capsys.readouterr().out
    processed.clear()
    assert main(call) == 1
    assert [Path(videos[0]).parent.name for videos, _ in processed] == ["bad"], "the good one is kept"
    processed.clear()
    assert main([*call, "--distance", "a,b=3"]) == 1
    assert len(processed) == 2, "other options, other results"
    processed.clear()
    touch(tmp_path / "in", "good/c.mp4")
    assert main(call) == 1
    assert ["a.mp4", "b.mp4", "c.mp4"] in [[Path(video).name for video in videos] for videos, _ in processed]


@pytest.mark.usefixtures("at_hand", "in_this_process")
def test_options_unsupported_for_groups_are_rejected(processed, tmp_path):
    touch(tmp_path / "in", "good/a.mp4", "good/b.mp4")
    call = [str(tmp_path / "in"), "--cameras", "auto", "--out", str(tmp_path / "out"), "--quiet"]
    assert main([*call, "--start", "1"]) == 1
    line = json.loads((tmp_path / "out/manifest.jsonl").read_text())
    assert line["error"] == "start: not supported with several cameras"
    assert main([*call, "--cameras", str(tmp_path / "none.json")]) == 2
    assert not processed
