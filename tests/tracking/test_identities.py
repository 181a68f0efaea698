"""Identities: stable from the first frame, recovered after a gap, never reused."""

import numpy as np
import pytest

from pose.tracking.box_trackers import BOX_TRACKERS
from pose.tracking.identities import UNASSIGNED, Identities

PICTURE = np.zeros((400, 800, 3), np.uint8)
FRAME = 1 / 30


class Scene:
    """People whose boxes move; the caller follows none of them unless told so."""

    def __init__(self, tracker="bytetrack", **options):
        self.identities = Identities(tracker, **options)

    def show(self, boxes, time, ids=None, scores=None):
        boxes = np.array(boxes, np.float32).reshape(-1, 4)
        ids = np.array(ids if ids is not None else [UNASSIGNED] * len(boxes), np.int64)
        scores = np.array(scores if scores is not None else [0.9] * len(boxes), np.float32)
        return self.identities.assign(boxes, scores, ids, time, PICTURE).tolist()


def person(x, width=100):
    return [x, 100, x + width, 300]


@pytest.mark.parametrize("tracker", BOX_TRACKERS)
def test_ids_start_at_one_in_the_first_frame_and_stay(tracker):
    scene = Scene(tracker)
    for frame in range(40):
        ids = scene.show([person(50 + 3 * frame), person(500 - 2 * frame)], frame * FRAME)
        assert ids == [1, 2]


@pytest.mark.parametrize("tracker", BOX_TRACKERS)
def test_order_of_the_boxes_does_not_matter(tracker):
    scene = Scene(tracker)
    assert scene.show([person(50), person(500)], 0.0) == [1, 2]
    assert scene.show([person(501), person(51)], FRAME) == [2, 1]


@pytest.mark.parametrize("tracker", BOX_TRACKERS)
@pytest.mark.parametrize("followed", [False, True])
def test_person_lost_for_half_a_second_keeps_the_id(tracker, followed):
    scene = Scene(tracker)
    for frame in range(20):
        boxes = [person(50 + 2 * frame), person(500)]
        assert scene.show(boxes, frame * FRAME, ids=[1, 2] if followed and frame else None) == [1, 2]
    for frame in range(20, 35):
        assert scene.show([person(500)], frame * FRAME, ids=[2] if followed else None) == [2]
    assert scene.show([person(500), person(50 + 2 * 35)], 35 * FRAME, ids=[2, 0] if followed else None) == [2, 1]


@pytest.mark.parametrize("tracker", BOX_TRACKERS)
def test_id_of_a_person_lost_for_long_is_not_reused(tracker):
    scene = Scene(tracker)
    for frame in range(10):
        assert scene.show([person(50)], frame * FRAME) == [1]
    assert scene.show([], 11 * FRAME) == []
    assert scene.show([person(50)], 3.0) == [2]


def test_new_person_never_takes_a_tracked_id():
    scene = Scene()
    for frame in range(10):
        scene.show([person(50)], frame * FRAME, ids=[1] if frame else None)
    ids = scene.show([person(55), person(400)], 10 * FRAME, ids=[0, 1])  # the follower says that 1 is on the right
    assert ids[1] == 1
    assert ids[0] != 1


@pytest.mark.parametrize("tracker", BOX_TRACKERS)
def test_lost_person_keeps_the_id_when_the_others_were_swapped(tracker):
    """One of two is hidden, and who is still seen turns out to be the other: the hidden one comes back as the one."""
    scene = Scene(tracker)
    left, right = person(300), person(420)
    for frame in range(10):
        assert scene.show([left, right], frame * FRAME, ids=[1, 2] if frame else None) == [1, 2]
    assert scene.show([left], 10 * FRAME, ids=[2]) == [2]  # as it seems
    scene.identities.swap_ids(1, 2)
    assert scene.show([left], 11 * FRAME, ids=[1]) == [1]
    assert scene.show([left, right], 12 * FRAME, ids=[1, 0]) == [1, 2]


def test_many_people_keep_their_ids(rng):
    scene = Scene()
    starts, speeds = np.arange(10) * 150.0, rng.uniform(-30, 30, 10)
    for frame in range(30):
        order = rng.permutation(10)
        ids = np.array(scene.show([person(x, 60) for x in (starts + speeds * frame * FRAME)[order]], frame * FRAME))
        if frame == 0:
            expected = ids[np.argsort(order)]
            assert sorted(expected) == list(range(1, 11))
        np.testing.assert_array_equal(ids, expected[order])


def test_unknown_tracker_is_refused_with_the_known_names():
    with pytest.raises(ValueError, match="'sorted'; known: bytetrack, ocsort, botsort"):
        Identities("sorted")
