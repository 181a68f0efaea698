"""Memory of live runs: two minutes of people who come and go, and a recording of 8K."""

import json
import subprocess
import sys

import av
import numpy as np
import pytest
from memory_grown import megabytes_grown

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


RECORD = """
source = open_live(sys.argv[1], loop=True)
with LiveLoop(Pipeline.from_preset("fast", live=True), source, world=True) as loop:
    recorder = Recorder(loop, Path(sys.argv[2]))
    while recorder.frames < 25:
        sleep(0.5)
    recorder.close()
"""
IMPORTS = """
from pathlib import Path
from time import sleep
from pose import Pipeline
from pose.live import LiveLoop, open_live
from pose.live.recorder import Recorder
"""


@pytest.mark.slow
def test_recording_of_8k_needs_less_than_2_gb(weights_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
    clip = tmp_path / "8k.mp4"
    with av.open(str(clip), "w") as out:
        track = out.add_stream("libx264", rate=12, options={"preset": "ultrafast"})
        track.width, track.height, track.pix_fmt = 7680, 4320, "yuv420p"
        for shade in range(0, 240, 20):
            image = np.full((4320, 7680, 3), shade, np.uint8)
            out.mux(track.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        out.mux(track.encode(None))
    grown, _ = megabytes_grown(IMPORTS, RECORD, clip, tmp_path)
    assert grown < 1900
