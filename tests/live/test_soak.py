"""Two minutes of people who come and go: memory stays flat. The same command, for longer, is the real soak."""

import json

import pytest
from pose_apps.webcam.command import main

SECONDS = 120


@pytest.mark.slow
def test_memory_stays_flat(videos, weights_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
    path = tmp_path / "report.json"
    clip = str(videos / "walk-by.mp4")
    assert main(["--headless", "--source", clip, "--loop", "--seconds", str(SECONDS), "--report", str(path)]) == 0
    report = json.loads(path.read_text())
    assert report["seconds"] >= SECONDS
    assert report["frames_in"] == report["processed"] + report["dropped"] > 5 * SECONDS
    assert report["people"]["ids"] > 3
    memory = report["memory_mib"]
    assert memory["highest_after"] <= 1.05 * memory["settled"]
