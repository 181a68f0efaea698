"""Frames in which a person is not fully visible yet, or no longer, or is below the floor."""

from dataclasses import replace

import numpy as np
from walker import ANKLES, seen_person, walking

from pose.world.clean import Steps, clean, partial_frames
from pose.world.frame import up_of

LEGS = [1, 2, 3, 4, 5, 6]


def placed(feet):
    """(T, 17, 3) m of people whose lower ankle is at these heights."""
    joints = np.ones((len(feet), 17, 3))
    joints[:, ANKLES[0], 1] = feet
    return joints


def flags(feet, visible, *visits):
    return partial_frames(placed(feet), np.array(visible, bool), list(visits) or [slice(0, len(feet))]).tolist()


def test_frames_before_and_after_full_view_are_partial():
    assert flags([0.1] * 6, [0, 0, 1, 0, 1, 0]) == [True, True, False, False, False, True]


def test_frames_below_the_floor_are_partial():
    assert flags([0.1, 0.1, -0.01, 0.0], [1, 1, 1, 1]) == [False, False, True, False]


def test_never_fully_seen_person_is_judged_by_the_floor():
    assert flags([0.1, -0.1, 0.1], [0, 0, 0]) == [False, True, False]


def test_person_entering_with_hidden_legs_is_partial():
    walk = seen_person(walking(4.0), turn=90, distance=6)
    scores = walk.scores.copy()
    scores[:20, LEGS] = 0
    _, people = clean({1: replace(walk, scores=scores)}, walk.times, Steps(up=up_of(0, 0)))
    assert people[1].partial[:20].all()
    assert not people[1].partial[20:].any()
