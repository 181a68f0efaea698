"""The trackers against the `trackers` library, and the parts they are made of against their definitions."""

import importlib.util
import json

import cv2
import numpy as np
import pytest
from crowd import REFERENCE, SCENES, Library, arrays, crowd
from pose_fakes import STANDING

from pose.structures.skeletons import H36M17
from pose.tracking.association import UNMATCHED, BotSort, ByteTrack, OcSort
from pose.tracking.association.botsort import ImageMotion
from pose.tracking.association.box_tracker import KalmanFilter
from pose.tracking.box_trackers import BOX_TRACKERS
from pose.tracking.identities import UNASSIGNED, Identities, joint_sigmas, keypoint_similarity

TRACKERS = {"bytetrack": ByteTrack, "ocsort": OcSort, "botsort": BotSort}


@pytest.mark.parametrize("scene", range(SCENES))
@pytest.mark.parametrize("name", TRACKERS)
def test_association_equals_recorded_trackers_output(name, scene):
    frames = json.loads(REFERENCE.read_text(encoding="utf-8"))["scenes"][scene]
    tracker = TRACKERS[name](memory=1.0)
    for frame in frames:
        assert tracker.update(*arrays(frame, seen=name == "botsort")).tolist() == frame[name], frame["time"]
    assert max(max(frame[name], default=0) for frame in frames) > 10  # people were lost and found


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("trackers") is None, reason="needs trackers, which brings another OpenCV")
@pytest.mark.parametrize("seed", range(100, 110))
@pytest.mark.parametrize("name", TRACKERS)
def test_association_equals_the_trackers_library(name, seed):
    tracker, library = TRACKERS[name](memory=1.0), Library(name)
    for frame in crowd(seed, people=8, frames=200):
        shown = arrays(frame, seen=name == "botsort")
        np.testing.assert_array_equal(tracker.update(*shown), library.update(*shown))


def test_kalman_filter_tracks_a_straight_walk(rng):
    straight = KalmanFilter(np.zeros(4), np.ones(8), np.full(8, 0.01), np.full(4, 0.1))
    time, speed = 0.0, np.array([2.0, -1, 2, -1])
    for step in rng.uniform(0.3, 3, 200):
        time += step
        straight.predict(step)
        straight.update(speed * time)
    straight.predict(5)
    np.testing.assert_allclose(straight.state[:4], speed * (time + 5), atol=0.05)
    np.testing.assert_allclose(straight.state[4:], speed, atol=0.01)


def test_camera_motion_is_estimated(rng):
    wall = cv2.resize(rng.integers(0, 255, (40, 40, 3), dtype=np.uint8), (800, 800), interpolation=cv2.INTER_CUBIC)
    camera = ImageMotion()
    np.testing.assert_array_equal(camera.step(wall[200:500, 200:600]), np.eye(2, 3))
    motion = camera.step(wall[206:506, 190:590])
    np.testing.assert_allclose(motion, [[1, 0, 10], [0, 1, -6]], atol=0.3)
    np.testing.assert_array_equal(camera.step(np.zeros((300, 400, 3), np.uint8)), np.eye(2, 3))  # nothing to see
    np.testing.assert_array_equal(camera.step(wall[:100, :100]), np.eye(2, 3))  # another size


def test_weak_boxes_start_no_track_and_ids_are_unique():
    for kind in TRACKERS.values():
        tracker = kind(memory=0.2)
        image, box = np.zeros((64, 64, 3), np.uint8), np.array([[0, 0, 40, 90]], np.float32)
        assert tracker.update(box, np.array([0.3], np.float32), 0.0, image).tolist() == [UNMATCHED]
        assert tracker.update(box, np.array([0.9], np.float32), 0.1, image).tolist() == [0]
        assert tracker.update(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), 0.2, image).tolist() == []
        assert tracker.update(box, np.array([0.9], np.float32), 1.0, image).tolist() == [1]


PICTURE = np.zeros((432, 768, 3), np.uint8)


def pose(x, mirrored=False):
    """(17, 3) a person at x px who walks to the right, or to the left."""
    body = STANDING[:, :2] * 200 * [-1 if mirrored else 1, 1]
    body[[2, 3, 12, 13], 0] += -30 if mirrored else 30
    return np.concatenate([body + np.array([x, 200]), np.ones((17, 1))], axis=1).astype(np.float32)


def box(points):
    return np.concatenate([points[:, :2].min(axis=0), points[:, :2].max(axis=0)])


def test_similarity_is_one_for_the_same_pose_and_falls_with_distance():
    sigmas, area = joint_sigmas(H36M17), np.full(1, 2e4, np.float32)
    similar = [keypoint_similarity(pose(0)[None], pose(x)[None], area, sigmas)[0, 0] for x in (0, 5, 20, 200)]
    assert similar[0] == 1
    assert similar == sorted(similar, reverse=True)
    assert similar[-1] < 0.01


def test_similarity_uses_jointly_visible_points():
    a, b = pose(0), pose(0)
    b[3, :2], b[3, 2] = np.nan, 0
    sigmas, area = joint_sigmas(H36M17), np.full(1, 2e4, np.float32)
    assert keypoint_similarity(a[None], b[None], area, sigmas)[0, 0] == 1
    b[:, 2] = 0
    assert keypoint_similarity(a[None], b[None], area, sigmas)[0, 0] == 0


@pytest.mark.parametrize("tracker", ["bytetrack", "ocsort"])
def test_people_turning_back_at_a_meeting_keep_ids(tracker, rng):
    """Boxes alone say that they walked through each other; the poses say that they did not."""
    identities = Identities(tracker, skeleton=H36M17)
    for frame in range(60):
        away = 5 + 4 * abs(30 - frame)
        people = np.stack([pose(384 - away), pose(384 + away, mirrored=True)])
        people[..., :2] += rng.normal(0, 1, (2, 17, 2))
        order = rng.permutation(2)
        boxes = np.stack([box(person) for person in people]).astype(np.float32)[order]
        nobody = np.full(2, UNASSIGNED, np.int64)
        ids = identities.assign(boxes, np.full(2, 0.9, np.float32), nobody, frame / 30, PICTURE, people[order])
        if frame == 0:
            first = ids[np.argsort(order)]
        np.testing.assert_array_equal(ids[np.argsort(order)], first)


@pytest.mark.parametrize("tracker", BOX_TRACKERS)
def test_crossing_people_keep_ids(tracker, rng):
    identities = Identities(tracker, skeleton=H36M17)
    for frame in range(60):
        people = np.stack([pose(264 + 4 * frame), pose(500 - 4 * frame, mirrored=True)])
        boxes = np.stack([box(person) for person in people]).astype(np.float32)
        nobody = np.full(2, UNASSIGNED, np.int64)
        ids = identities.assign(boxes, np.full(2, 0.9, np.float32), nobody, frame / 30, PICTURE, people)
        assert ids.tolist() == [1, 2]
