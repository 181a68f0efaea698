"""Two minutes of people who come and go: memory stays flat. The same command, for longer, is the real soak."""

import json
import subprocess
import sys

import pytest

SECONDS = 120
COMMAND = "import sys; from pose_apps.webcam.command import main; sys.exit(main())"


@pytest.mark.slow
def test_live_memory_is_bounded(videos, at_hand, tmp_path):
    """In a process of its own: what others left in this one's heap would count too."""
    path = tmp_path / "report.json"
    words = ["--headless", "--source", videos / "walk-by.mp4", "--loop", "--seconds", SECONDS, "--report", path]
    subprocess.run([sys.executable, "-c", COMMAND, *map(str, words)], check=True)
    report = json.loads(path.read_text())
    assert report["seconds"] >= SECONDS
    assert report["frames_in"] == report["processed"] + report["dropped"] > 5 * SECONDS
    assert report["people"]["ids"] > 3
    memory = report["memory_mib"]
    assert memory["highest_after"] <= 1.05 * memory["settled"]
