"""The displayed one of several live cameras keeps its frame rate, and the processor is not wasted."""

import math
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
from live_fakes import FakePipeline, wait_until

from pose.live import LiveLoop, PushedFrames
from pose.live.several.pacing import MIN_FPS, Pacing


def limits(capacity, cameras, source_fps=30.0, seconds=60):
    """The limit, and the frame rates of the displayed and the other cameras, with networks for `capacity` frames/s."""
    pacing, processed, dropped = Pacing(), 0.0, 0.0
    limit, shown, other = math.inf, 0.0, 0.0
    for second in range(seconds):
        other = min(source_fps, limit, capacity / cameras)
        shown = min(source_fps, capacity - (cameras - 1) * other)
        processed, dropped = processed + shown, dropped + source_fps - shown
        limit = pacing.step(float(second), 0, SimpleNamespace(processed=processed, dropped=dropped), other)
    return limit, shown, other


def test_other_cameras_give_way_to_the_displayed_one():
    _, shown, other = limits(capacity=24.0, cameras=2)
    assert shown > 13.0
    assert 7.0 < other < 11.0
    _, shown, other = limits(capacity=200.0, cameras=2)
    assert (shown, other) == (30.0, 30.0)
    assert limits(capacity=8.0, cameras=2)[0] == MIN_FPS


def test_a_new_displayed_camera_does_not_count_as_slow():
    pacing = Pacing()
    pacing.step(0.0, 0, SimpleNamespace(processed=100, dropped=50), 10.0)
    assert pacing.step(1.0, 1, SimpleNamespace(processed=10, dropped=90), 10.0) == math.inf
    assert not pacing.is_due(1.5)
    assert pacing.is_due(2.0)


def test_frames_above_the_greatest_rate_do_not_reach_the_networks():
    source, seen = PushedFrames("camera", capacity=100), []
    loop = LiveLoop(FakePipeline(), source, backlog=100)
    loop.max_fps = 10.0
    for index in range(61):
        source.push(np.zeros((48, 64, 3), np.uint8), at=100.0 + index / 30)
    with loop:
        source.close()
        seen = [live.captured for live in loop.subscribe(200)]
        wait_until(lambda: not loop.running)
    assert np.diff(seen).min() > 0.09
    assert np.diff(seen).max() < 0.11
    status = loop.status()
    assert status.frames_in == 61
    assert status.dropped == 61 - status.processed


def test_live_command_uses_one_thread_for_matrices():
    code = "import sys, pose_apps.webcam.command, os; print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules)"
    given = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    out = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=True).stdout
    assert out.split() == ["1", "False"], "NumPy reads the variable when it is imported"
