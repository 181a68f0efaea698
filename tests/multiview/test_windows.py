"""Which moments of a recording calibrate its cameras."""

import numpy as np
import pytest
import scenes

from pose.multiview.calibrate import MAX_KNOTS, WINDOWS, calibration_windows, shared_span
from pose.multiview.types import ViewCamera, ViewTrack


@pytest.fixture(scope="module")
def camera():
    return scenes.told(scenes.cameras((0.0,)))[0]


def track(camera: int, begin: float, end: float, lively: tuple[float, float] | None = None) -> ViewTrack:
    """A person at 10 frames/s whose joints move between two moments, or always."""
    times = np.arange(begin, end, 0.1)
    moves = np.ones(len(times), bool) if lively is None else (times >= lively[0]) & (times < lively[1])
    joints = np.zeros((len(times), 17, 3), np.float32)
    joints[:, :, 0] = np.where(moves, 0.1 * np.sin(9 * times), 0)[:, None]
    count = len(times)
    return ViewTrack(
        camera, 1, times, np.zeros((count, 17, 2), np.float32), np.ones((count, 17), np.float32), joints,
        np.zeros((count, 3), np.float32), np.ones((count, 17), np.float32),
    )  # fmt: skip


def test_all_of_a_short_recording_is_used(camera):
    [grid] = calibration_windows([{0: track(0, 0, 8), 1: track(1, 1, 9)}], [camera] * 2)
    assert grid[0] == pytest.approx(1.0)
    assert grid[-1] == pytest.approx(7.9, abs=0.1)


def test_long_recording_uses_the_liveliest_part_of_each_third(camera):
    people = [{c: track(c, 0, 300, (150, 162)) for c in (0, 1)}]
    windows = calibration_windows(people, [camera] * 2)
    assert len(windows) == WINDOWS
    assert sum(map(len, windows)) <= MAX_KNOTS + WINDOWS
    assert 149 < windows[1][0] < 153
    assert windows[2][0] - windows[0][-1] > 60


def test_person_is_shared_while_two_cameras_see_them(camera):
    cameras: list[ViewCamera] = [camera] * 3
    assert shared_span({0: track(0, 0, 5)}, cameras) is None
    assert shared_span({0: track(0, 0, 5), 1: track(1, 6, 9)}, cameras) is None
    begin, end = shared_span({0: track(0, 0, 5), 1: track(1, 2, 9), 2: track(2, 3, 7)}, cameras)
    assert (begin, end) == pytest.approx((2.0, 6.9), abs=0.11)
