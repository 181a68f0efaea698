"""`--demo` of pose-run and pose-webcam: a clip from the package index, so that a clone alone has something to show."""

import json
from pathlib import Path

import pytest
from pose_apps.run import main as run_main
from pose_apps.webcam.command import main as webcam_main

from pose.networks.weights import sha256_of
from pose.networks.weights.catalogue import DEMO_CLIP
from pose.results import load_poses


def test_demo_clip_equals_its_catalogue_entry(demo_clip):
    assert (demo_clip.name, demo_clip.stat().st_size, sha256_of(demo_clip)) == (
        "demo.mp4",
        DEMO_CLIP.size,
        DEMO_CLIP.sha256,
    )


def test_pose_run_finds_two_people(demo_clip, default_weights, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    call = ["--demo", "--detector", "blazepose", "--start", "3", "--end", "3.5", "--no-overlay", "--formats", "npz"]
    assert run_main(call) == 0, capsys.readouterr().err
    poses = load_poses(Path("demo", "poses.npz"))
    assert set(poses.id.tolist()) == {1, 2}
    assert "2 people" in capsys.readouterr().out


def test_pose_webcam_loops_the_demo_clip(demo_clip, default_weights, tmp_path, capsys):
    report = tmp_path / "report.json"
    call = ["--headless", "--demo", "--detector", "blazepose", "--seconds", "1", "--report", str(report)]
    assert webcam_main(call) == 0, capsys.readouterr().err
    assert json.loads(report.read_text())["source"] == str(demo_clip)


@pytest.mark.parametrize(
    ("main", "arguments", "line"),
    [
        (run_main, ["--demo", "clip.mp4"], "error: --demo and clip.mp4: name a video or give --demo, not both\n"),
        (webcam_main, ["--demo", "--source", "0"], "error: --demo and --source: give only one\n"),
    ],
)
def test_demo_rejects_another_source(main, arguments, line, capsys):
    assert main(arguments) == 2
    assert capsys.readouterr().err == line
