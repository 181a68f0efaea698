"""Images, times and keypoints in units that cannot be right are told, not turned into nonsense."""

import math
import warnings

import numpy as np
import pytest

from pose.errors import PoseWarning, UsageError
from pose.structures.incoming import IncomingFrames, check_units
from pose.structures.types import Frame

SIZE = (640, 480)


def frame(index: int, time: float, shape: tuple[int, ...] = (480, 640, 3), kind: type = np.uint8) -> Frame:
    return Frame(np.zeros(shape, kind), index, time)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (frame(1, math.nan), "frame 1: time nan s after 0.5 s"),
        (frame(1, math.inf), "frame 1: time inf s after 0.5 s"),
        (frame(1, 0.5), "frame 1: time 0.5 s after 0.5 s"),
        (frame(1, 0.4), "frame 1: time 0.4 s after 0.5 s"),
        (frame(1, 0.6, (640, 480, 3)), "frame 1: got 480 x 640 px, but the session expects 640 x 480 px"),
        (frame(1, 0.6, (480, 640)), "frame 1: expected (H, W, 3) uint8 RGB"),
        (frame(1, 0.6, (480, 640, 4)), "frame 1: expected (H, W, 3) uint8 RGB"),
        (frame(1, 0.6, kind=np.float32), "frame 1: expected (H, W, 3) uint8 RGB"),
    ],
)
def test_invalid_frame_raises_at_once(wrong, words):
    incoming = IncomingFrames(SIZE)
    incoming.check(frame(0, 0.5))
    with pytest.raises(UsageError) as error:
        incoming.check(wrong)
    assert words in str(error.value)


@pytest.mark.parametrize("step", [1.0, 33.4])
def test_frame_numbers_and_milliseconds_warn_once(step):
    incoming = IncomingFrames(SIZE)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for index in range(20):
            incoming.check(frame(index, index * step))
    (one,) = told
    assert one.category is PoseWarning
    assert "expected seconds, not frame numbers or milliseconds" in str(one.message)


def test_dropped_frames_do_not_warn():
    incoming = IncomingFrames(SIZE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for index in range(0, 600, 60):
            incoming.check(frame(index, index / 25))


def person(rng, frames: int = 10):
    return rng.uniform(100, 300, (frames, 17, 2)).astype(np.float32), np.ones((frames, 17), np.float32)


def test_relative_keypoints_are_rejected(rng):
    keypoints, scores = person(rng)
    times = np.arange(10) / 30
    check_units(keypoints, scores, times, SIZE)
    with pytest.raises(ValueError, match="multiply relative coordinates by 640 and 480"):
        check_units(keypoints / SIZE, scores, times, SIZE)
    keypoints[3:], scores[3:] = 0, 0  # not seen, so not judged
    check_units(keypoints, scores, times, SIZE)
    check_units(keypoints, np.zeros_like(scores), times, SIZE)


def test_keypoints_outside_the_image_warn(rng):
    keypoints, scores = person(rng)
    with pytest.warns(PoseWarning, match=r"a.npz: keypoints: 100% lie outside the picture of 90 x 90 px"):
        check_units(keypoints, scores, np.arange(10) / 30, (90, 90), "a.npz: ")
    with pytest.warns(PoseWarning, match="frames are 1 s apart"):
        check_units(keypoints, scores, np.arange(10.0), SIZE)
