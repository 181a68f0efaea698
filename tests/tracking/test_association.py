"""The trackers against the `trackers` library, and the parts they are made of against their definitions."""

import importlib.util
import itertools
import json

import cv2
import numpy as np
import pytest
from crowd import REFERENCE, SCENES, Library, arrays, crowd
from hypothesis import given
from hypothesis import strategies as st

from pose.structures.assignment import best_pairs
from pose.tracking.association import UNMATCHED, BotSort, ByteTrack, OcSort
from pose.tracking.association.camera_motion import ImageMotion
from pose.tracking.association.kalman import KalmanFilter

TRACKERS = {"bytetrack": ByteTrack, "ocsort": OcSort, "botsort": BotSort}


@pytest.mark.parametrize("scene", range(SCENES))
@pytest.mark.parametrize("name", TRACKERS)
def test_who_is_who_is_what_the_library_says(name, scene):
    frames = json.loads(REFERENCE.read_text(encoding="utf-8"))["scenes"][scene]
    tracker = TRACKERS[name](memory=1.0)
    for frame in frames:
        assert tracker.update(*arrays(frame, seen=name == "botsort")).tolist() == frame[name], frame["time"]
    assert max(max(frame[name], default=0) for frame in frames) > 10  # people were lost and found


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("trackers") is None, reason="needs trackers, which brings another OpenCV")
@pytest.mark.parametrize("seed", range(100, 110))
@pytest.mark.parametrize("name", TRACKERS)
def test_the_library_itself_agrees(name, seed):
    tracker, library = TRACKERS[name](memory=1.0), Library(name)
    for frame in crowd(seed, people=8, frames=200):
        shown = arrays(frame, seen=name == "botsort")
        np.testing.assert_array_equal(tracker.update(*shown), library.update(*shown))


@given(st.integers(0, 5), st.integers(0, 5), st.randoms(use_true_random=False))
def test_assignment_is_the_best_of_all(rows, columns, chance):
    worth = np.array([[chance.uniform(-1, 1) for _ in range(columns)] for _ in range(rows)]).reshape(rows, columns)
    pairs = best_pairs(worth, min_similarity=-np.inf)
    few, many = sorted((rows, columns))
    assert len(pairs) == len({row for row, _ in pairs}) == len({column for _, column in pairs}) == few
    tall = worth if rows <= columns else worth.T
    best = max(sum(tall[k, chosen[k]] for k in range(few)) for chosen in itertools.permutations(range(many), few))
    assert sum(worth[pair] for pair in pairs) == pytest.approx(best, abs=1e-9)
    assert set(best_pairs(worth, min_similarity=0.2)) == {pair for pair in pairs if worth[pair] >= 0.2}


def test_filter_follows_a_straight_walk_whatever_the_steps(rng):
    straight = KalmanFilter(np.zeros(4), np.ones(8), np.full(8, 0.01), np.full(4, 0.1))
    time, speed = 0.0, np.array([2.0, -1, 2, -1])
    for step in rng.uniform(0.3, 3, 200):
        time += step
        straight.predict(step)
        straight.update(speed * time)
    straight.predict(5)
    np.testing.assert_allclose(straight.state[:4], speed * (time + 5), atol=0.05)
    np.testing.assert_allclose(straight.state[4:], speed, atol=0.01)


def test_two_half_steps_are_one_step():
    once, twice = (KalmanFilter(np.arange(4.0), np.ones(8), np.full(8, 0.01), np.full(4, 0.1)) for _ in range(2))
    for each in (once, twice):
        each.state[4:] = [1, 2, 3, 4]
    once.predict(1)
    for _ in range(2):
        twice.predict(0.5)
    np.testing.assert_allclose(once.state, twice.state)


def test_camera_motion_is_what_the_camera_did(rng):
    wall = cv2.resize(rng.integers(0, 255, (40, 40, 3), dtype=np.uint8), (800, 800), interpolation=cv2.INTER_CUBIC)
    camera = ImageMotion()
    np.testing.assert_array_equal(camera.step(wall[200:500, 200:600]), np.eye(2, 3))
    motion = camera.step(wall[206:506, 190:590])
    np.testing.assert_allclose(motion, [[1, 0, 10], [0, 1, -6]], atol=0.3)
    np.testing.assert_array_equal(camera.step(np.zeros((300, 400, 3), np.uint8)), np.eye(2, 3))  # nothing to see
    np.testing.assert_array_equal(camera.step(wall[:100, :100]), np.eye(2, 3))  # another size


def test_a_pan_loses_no_person_to_botsort(rng):
    wall = cv2.resize(rng.integers(0, 255, (40, 80, 3), dtype=np.uint8), (3000, 400), interpolation=cv2.INTER_CUBIC)
    ids = {"bytetrack": [], "botsort": []}
    trackers = {name: TRACKERS[name](memory=1.0) for name in ids}
    for frame, x in enumerate([0, 0, 0, 0, 60, 60, 140, 140]):
        box = np.array([[400 - x, 100, 440 - x, 260]], np.float32)
        for name, tracker in trackers.items():
            ids[name] += tracker.update(box, np.ones(1, np.float32), frame / 30, wall[:, x : x + 600]).tolist()
    assert set(ids["botsort"]) == {0}
    assert len(set(ids["bytetrack"])) > 1


def test_weak_boxes_start_no_track_and_numbers_are_not_used_again():
    for kind in TRACKERS.values():
        tracker = kind(memory=0.2)
        image, box = np.zeros((64, 64, 3), np.uint8), np.array([[0, 0, 40, 90]], np.float32)
        assert tracker.update(box, np.array([0.3], np.float32), 0.0, image).tolist() == [UNMATCHED]
        assert tracker.update(box, np.array([0.9], np.float32), 0.1, image).tolist() == [0]
        assert tracker.update(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), 0.2, image).tolist() == []
        assert tracker.update(box, np.array([0.9], np.float32), 1.0, image).tolist() == [1]
