"""A detection pass is skipped only if the image has not changed outside the tracked people."""

import numpy as np
import pytest

from pose.tracking.detection_schedule import MAX_SKIP_S, BackgroundChange

NO_BOXES = np.zeros((0, 4), np.float32)


@pytest.fixture
def room(rng) -> np.ndarray:
    return np.repeat(np.repeat(rng.integers(60, 180, (27, 48, 3), np.uint8), 20, axis=0), 20, axis=1)


def with_person(room: np.ndarray, left: int, top: int, height: int) -> np.ndarray:
    picture = room.copy()
    picture[top : top + height, left : left + height // 3] = (250, 20, 20)
    return picture


def test_an_unchanged_image_needs_no_detection_within_a_second(room, rng):
    change = BackgroundChange()
    assert change.detect(room, NO_BOXES, 0.0)
    for time in np.arange(0.1, MAX_SKIP_S, 0.1):
        noisy = (room + rng.normal(0, 4, room.shape)).clip(0, 255).astype(np.uint8)
        assert not change.detect(noisy, NO_BOXES, time)
    assert change.detect(room, NO_BOXES, MAX_SKIP_S)


@pytest.mark.parametrize("height", [60, 200])
def test_new_person_is_a_background_change(height, room):
    change = BackgroundChange()
    change.detect(room, NO_BOXES, 0.0)
    assert change.detect(with_person(room, 700, 250, height), NO_BOXES, 0.1)


def test_only_change_outside_tracked_boxes_counts(room):
    change = BackgroundChange()
    box = np.array([[300, 200, 400, 500]], np.float32)
    change.detect(with_person(room, 300, 200, 300), box, 0.0)
    assert not change.detect(with_person(room, 310, 200, 300), box + 10, 0.1)
    assert change.detect(with_person(with_person(room, 310, 200, 300), 700, 200, 300), box + 10, 0.2)
