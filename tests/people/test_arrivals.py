"""A look for newcomers is left out where the picture has not changed, and only there."""

import numpy as np
import pytest

from pose.people.arrivals import LONGEST, Arrivals
from pose.people.unfollowed import count_unfollowed
from pose.types import Boxes

NOBODY = np.zeros((0, 4), np.float32)


@pytest.fixture
def room(rng) -> np.ndarray:
    return np.repeat(np.repeat(rng.integers(60, 180, (27, 48, 3), np.uint8), 20, axis=0), 20, axis=1)


def with_person(room: np.ndarray, left: int, top: int, height: int) -> np.ndarray:
    picture = room.copy()
    picture[top : top + height, left : left + height // 3] = (250, 20, 20)
    return picture


def test_the_same_room_is_not_searched_again_within_a_second(room, rng):
    arrivals = Arrivals()
    assert arrivals.possible(room, NOBODY, 0.0)
    for time in np.arange(0.1, LONGEST, 0.1):
        noisy = (room + rng.normal(0, 4, room.shape)).clip(0, 255).astype(np.uint8)
        assert not arrivals.possible(noisy, NOBODY, time)
    assert arrivals.possible(room, NOBODY, LONGEST)


@pytest.mark.parametrize("height", [60, 200])
def test_somebody_who_comes_in_is_looked_for(height, room):
    arrivals = Arrivals()
    arrivals.possible(room, NOBODY, 0.0)
    assert arrivals.possible(with_person(room, 700, 250, height), NOBODY, 0.1)


def test_who_is_followed_may_move_and_who_comes_beside_them_is_looked_for(room):
    arrivals = Arrivals()
    box = np.array([[300, 200, 400, 500]], np.float32)
    arrivals.possible(with_person(room, 300, 200, 300), box, 0.0)
    assert not arrivals.possible(with_person(room, 310, 200, 300), box + 10, 0.1)
    assert arrivals.possible(with_person(with_person(room, 310, 200, 300), 700, 200, 300), box + 10, 0.2)


def test_a_picture_of_another_size_is_another_room(room):
    arrivals = Arrivals()
    arrivals.possible(room, NOBODY, 0.0)
    assert arrivals.possible(room[:, :600], NOBODY, 0.1)


def test_people_seen_and_not_followed_are_counted_once():
    found = Boxes(
        np.array([[0, 0, 100, 300], [5, 5, 95, 290], [300, 0, 400, 300], [600, 0, 700, 300]], np.float32),
        np.array([0.9, 0.8, 0.7, 0.4], np.float32),
    )
    followed = np.array([[10, 10, 90, 280]], np.float32)
    assert count_unfollowed(found, followed) == 1  # the third: the second is the first again, the fourth is unsure
    assert count_unfollowed(found, NOBODY) == 3
    assert count_unfollowed(Boxes.empty(), followed) == 0
