"""Gravity and focal length from straight lines of rendered rooms, with known truth."""

import math
from dataclasses import replace

import numpy as np
import pytest
from test_scene_sizes import person

from benchmarks.world.rooms import image_of
from pose.structures.camera import Camera, intrinsics_from_fov
from pose.structures.skeletons import COCO17
from pose.structures.types import NO_LINK, Background, People
from pose.world.camera_motion.path import static_path
from pose.world.frame import rotation_of, up_of
from pose.world.live_scene import joined_lines
from pose.world.scene.lines import (
    MAX_LINES,
    FrameLines,
    LineEvidence,
    SegmentFinder,
    evidence_from,
    find_segments,
    select_lines,
)
from pose.world.scene.model import FOCAL_SIGMA
from pose.world.scene.solve import solve

SIZE, HEIGHT = (1280, 720), 1.6
JOINTS = len(COCO17.names)


def people(boxes, keypoints, index=0, time=0.0):
    count = len(boxes)
    ones = np.ones((count, JOINTS), np.float32)
    boxes, keypoints = np.array(boxes, np.float32).reshape(-1, 4), np.array(keypoints, np.float32)
    return People(index, time, np.arange(count) + 1, boxes, ones[:, 0], keypoints.reshape(-1, JOINTS, 2), ones)


NOBODY = people([], [])
IDENTITY = np.eye(3)


def seen(up, fov=55.0, seed=0, turned=IDENTITY):
    """Lines of a room as a camera with the vertical `up` sees it after it was turned, read at 55 degrees."""
    matrix = intrinsics_from_fov(SIZE, fov)
    image = image_of(np.random.default_rng(seed), "room", turned.T @ rotation_of(up).T, HEIGHT, matrix, SIZE)
    return FrameLines.of(0.0, find_segments(image, NOBODY, COCO17), Camera.of(SIZE))


def off(found, up):
    return math.degrees(math.acos(min(1.0, float(found.up @ up))))


@pytest.mark.parametrize(("pitch", "roll"), [(-25.0, 5.0), (3.0, -8.0)])
def test_lines_of_a_room_show_the_vertical_better_than_bodies(pitch, roll):
    up = up_of(pitch, roll)
    leaning = replace(person(0, 5), directions=np.tile(up_of(pitch + 5, roll), (4, 1)))
    found = solve([leaning], 0.0, lines=evidence_from([seen(up)], [0.0], 0, None))
    assert off(found, up) < min(1.0, off(solve([leaning], 0.0), up))


@pytest.mark.parametrize("fov", [40.0, 75.0])
def test_lines_of_a_room_show_the_focal_length(fov):
    found = solve([], FOCAL_SIGMA, lines=evidence_from([seen(up_of(-20, 3), fov, seed=3)], [0.0], 0, None))
    true = intrinsics_from_fov(SIZE, fov)[0, 0] / intrinsics_from_fov(SIZE)[0, 0]
    assert found.focal_differs
    assert found.focal == pytest.approx(true, rel=0.03)


def test_lines_of_a_turning_camera_have_one_vertical():
    up, angle = up_of(-10, 2), np.radians(20)
    turned = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    frames = [seen(up), replace(seen(up, turned=turned), time=1.0)]
    path = static_path(np.array([0.0, 1.0]), np.zeros(1))
    path = replace(path, rotations=np.stack([np.eye(3), turned]))
    assert off(solve([], 0.0, lines=evidence_from(frames, [0.0], 0, path)), up) < 0.5


def test_lines_in_random_directions_do_not_turn_gravity(rng):
    starts = rng.uniform(-0.5, 0.5, (40, 1, 2))
    ends = np.concatenate([starts, starts + rng.normal(0, 0.1, (40, 1, 2))], axis=1)
    lines = evidence_from([replace(seen(up_of(0, 0)), ends=ends, sigmas=np.full(40, 0.01))], [0.0], 0, None)
    three = [person(-1, 4), person(0.5, 6), person(2, 9)]
    assert off(solve(three, 0.0, lines=lines), solve(three, 0.0).up) < 2.5


def test_few_lines_are_no_evidence():
    lines = seen(up_of(0, 0))
    few = replace(lines, ends=lines.ends[:3], sigmas=lines.sigmas[:3])
    assert not len(evidence_from([few], [0.0], 0, None))
    assert not len(evidence_from([lines], [0.0, 5.0], 1, None))  # another scene


def test_live_frames_keep_their_longest_lines_and_as_many_in_all_as_offline(rng):
    parts = [LineEvidence(rng.random((60, 2, 2)), rng.random(60), np.tile(np.eye(3), (60, 1, 1))) for _ in range(12)]
    joined, most = joined_lines(parts), MAX_LINES // 12
    assert len(joined) == MAX_LINES
    np.testing.assert_array_equal(joined.ends, np.concatenate([part.ends[:most] for part in parts]))


def test_lines_on_people_are_left_out():
    image = np.full((720, 1280, 3), 120, np.uint8)
    image[100:600, 600:640] = 255
    joints = np.tile([620.0, 350.0], (JOINTS, 1))
    joints[:, 1] = np.linspace(100, 600, JOINTS)
    somebody = people([[560, 90, 680, 610]], joints)
    assert len(find_segments(image, NOBODY, COCO17)) == 2
    assert len(find_segments(image, somebody, COCO17)) == 0


def test_parallel_slats_count_as_few_lines():
    image = np.full((SIZE[1], SIZE[0], 3), 200, np.uint8)
    image[100:300:8, 100:300] = 40  # slats in one or two parts of the image
    image[350:700, 900:904] = 40  # and one post
    ends = find_segments(image, NOBODY, COCO17)
    upright = np.abs(ends[:, 1, 1] - ends[:, 0, 1]) > np.abs(ends[:, 1, 0] - ends[:, 0, 0])
    assert 0 < upright.sum() <= 3
    assert 0 < (~upright).sum() <= 12


def searched(times, turn, cuts=()):
    """Times at which segments are found, by the rotation of the camera in rad per second."""
    finder, image, found = SegmentFinder(COCO17), np.zeros((72, 128, 3), np.uint8), []
    for index, time in enumerate(times):
        links = np.full((2, 6), float(NO_LINK))
        links[0] = [0, 0, turn * time, 0, 0, 1e-4]
        frame = replace(NOBODY, index=index, time=float(time), cut=index in cuts)
        if finder.step(image, frame, Background(links, 50, 1.0, 0.0)) is not None:
            found.append(round(float(time), 3))
    return found


def test_static_cameras_search_lines_at_the_start_of_each_scene_only():
    assert searched(np.arange(200) / 20, 0.0) == [0.0, 1.0, 2.0]
    assert searched(np.arange(200) / 20, 0.0, cuts=[100]) == [0.0, 1.0, 2.0, 5.0, 6.0, 7.0]


def test_turning_cameras_search_lines_ever_more_rarely():
    ten, hour = searched(np.arange(100) / 10, 0.05), searched(np.arange(3600), 0.05)
    assert ten == [float(second) for second in range(10)]
    assert len(hour) < 100


def test_lines_of_a_moving_camera_are_chosen_from_the_whole_clip():
    times, ends = np.arange(0, 60.0), np.zeros((8, 2, 2), np.float32) + np.eye(2, dtype=np.float32) * 100
    found = [(float(time), ends) for time in times]
    moving = select_lines(found, times, [0.0], True, Camera.of(SIZE))
    static = select_lines(found, times, [0.0], False, Camera.of(SIZE))
    assert [one.time for one in moving] == [float(5 * number) for number in range(12)]
    assert [one.time for one in static] == [0.0, 1.0, 2.0]
