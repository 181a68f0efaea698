"""The upright stage and the 3D picture made of it."""

import numpy as np
import pytest
from pose_fakes import STANDING, seen_result

from pose.skeletons import H36M17
from pose.types import FrameResult, Poses3D
from pose.view.colours import SIDE_COLOURS, person_colour
from pose.view.inset import Inset, _draw_haze, _View
from pose.view.upright import ANKLE_HEIGHT, Upright, mean_up, stage_rotation


def _tilt(degrees):
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def test_a_level_camera_sees_the_stage_with_y_and_z_exchanged():
    rotation = stage_rotation(np.array([0.0, -1.0, 0.0]))
    assert rotation @ [0.3, 0.5, 2.0] == pytest.approx([0.3, 2.0, -0.5])


@pytest.mark.parametrize("up", [(0, -1, 0), (0.1, -0.9, 0.3), (-0.2, -0.8, -0.4)])
def test_the_stage_is_a_rotation_that_turns_up_into_z(up):
    rotation = stage_rotation(np.array(up, float))
    assert rotation @ rotation.T == pytest.approx(np.eye(3), abs=1e-12)
    assert np.linalg.det(rotation) == pytest.approx(1)
    assert rotation @ (np.array(up) / np.linalg.norm(up)) == pytest.approx([0, 0, 1])


@pytest.mark.parametrize("degrees", [-20, 0, 15, 30])
def test_who_stands_shows_the_vertical_to_a_tilted_camera(degrees):
    tilt = _tilt(degrees)
    up = mean_up((STANDING @ tilt.T).astype(np.float32)[None])
    angle = np.degrees(np.arccos(up @ tilt @ [0, -1, 0] / np.linalg.norm(up)))
    assert angle < 1


def test_who_lies_says_nothing_of_the_vertical():
    lying = STANDING @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]], np.float32).T
    assert mean_up(lying[None]) == pytest.approx([0, -1, 0])


def test_a_tilted_camera_is_learnt_in_a_few_seconds_and_feet_stay_on_the_floor():
    tilt = _tilt(20)
    joints = (STANDING @ tilt.T).astype(np.float32)[None]
    upright = Upright()
    for i in range(250):
        root = (tilt @ [0, 0, 3 + i / 100]).astype(np.float32)[None]
        placed = upright.place([1], joints, root, i / 25)
    height = placed[0, :, 2]
    assert height[H36M17.index("left_ankle")] == pytest.approx(ANKLE_HEIGHT, abs=0.05)
    assert height[H36M17.index("head")] == pytest.approx(1.61 + ANKLE_HEIGHT, abs=0.05)


def test_a_jump_leaves_the_floor():
    upright = Upright()
    body = STANDING[None]
    for i in range(25):
        upright.place([1], body, np.array([[0, 0, 3]], np.float32), i / 25)
    in_the_air = upright.place([1], body, np.array([[0, -0.4, 3]], np.float32), 1.04)
    assert in_the_air[0, H36M17.index("left_ankle"), 2] == pytest.approx(0.4 + ANKLE_HEIGHT, abs=0.03)


def _has(image, colour, tolerance=30):
    return (np.abs(image.astype(int) - colour).max(axis=2) <= tolerance).sum()


def test_a_body_shows_its_sides_and_its_mark():
    image = Inset((300, 300)).render(seen_result([(0, 0, 3.0)]))
    assert image.shape == (300, 300, 3)
    for colour in (*SIDE_COLOURS.values(), person_colour(1)):
        assert _has(image, colour) > 60


def test_an_empty_stage_shows_a_floor_and_no_body():
    image = Inset((300, 300)).render(seen_result(np.zeros((0, 3))))
    assert _has(image, SIDE_COLOURS["left"]) == 0
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 10


def test_what_the_lifter_does_not_know_is_left_out():
    known = seen_result([(0, 0, 3.0)])
    unknown = Poses3D(known.poses.joints * np.nan, known.poses.root * np.nan, known.poses.sigma)
    nobody = Inset((200, 200)).render(seen_result(np.zeros((0, 3))))
    assert np.array_equal(Inset((200, 200)).render(FrameResult(known.people, unknown)), nobody)


def _haze(image, clear, middle):
    """How much lighter pixels are than without a haze, by their distance (px) from its middle: (40,)."""
    lighter = (image.astype(int) - clear).max(axis=2)
    rows, columns = np.indices(lighter.shape)
    away = np.hypot(columns - middle[0], rows - middle[1]).astype(int)
    return np.array([np.median(lighter[away == distance]) for distance in range(40)])


def test_haze_is_brightest_at_the_joint_half_as_bright_at_sigma_and_has_no_edge():
    view = _View((200, 160), np.zeros(3, np.float32), 0.0)
    view.distance = 3.0
    placed = np.full((1, 17, 3), 100, np.float32)  # out of sight
    placed[0, H36M17.index("left_wrist")] = 0
    sigma = np.full((1, 17), 0.01, np.float32)
    sigma[0, H36M17.index("left_wrist")] = 0.1
    (x, y), scale = view.project(np.zeros(3, np.float32))
    radius = round(0.1 * float(scale))
    clear = np.full((160, 200, 3), 40, np.uint8)
    image = clear.copy()
    _draw_haze(image, view, placed, sigma)
    profile = _haze(image, clear.astype(int), (x, y))
    assert (np.diff(profile) <= 1).all()
    assert np.abs(np.diff(profile)).max() < 0.2 * profile[0]  # no step anywhere
    assert profile[radius] == pytest.approx(profile[0] / 2, rel=0.25)
    assert profile[0] > 80 > 5 > profile[min(39, 3 * radius)]


def test_only_the_uncertain_joint_gets_a_haze():
    sure = seen_result([(0, 0, 3.0)])
    sigma = sure.poses.sigma.copy()
    sigma[0, H36M17.index("left_wrist")] = 100
    unsure = FrameResult(sure.people, Poses3D(sure.poses.joints, sure.poses.root, sigma))
    changed = (Inset((300, 300)).render(sure) != Inset((300, 300)).render(unsure)).any(axis=2)
    assert 500 < changed.sum() < 10_000


def test_a_far_bystander_does_not_make_the_near_ones_small():
    alone = Inset((300, 300)).render(seen_result([(0, 0, 3.0)]))
    with_bystander = Inset((300, 300)).render(seen_result([(0, 0, 3.0), (6, 0, 30.0)]))
    assert _has(with_bystander, SIDE_COLOURS["left"]) > 0.8 * _has(alone, SIDE_COLOURS["left"])


def test_the_person_who_is_farther_away_is_smaller_and_everybody_is_in_view():
    image = Inset((400, 400)).render(seen_result([(-1, 0, 3.0), (1, 0, 8.0)]))
    near, far = _has(image, person_colour(1), 8), _has(image, person_colour(2), 8)
    assert near > far > 20
    border = np.concatenate([image[0], image[-1], image[:, 0], image[:, -1]]).astype(int)
    for colour in (*SIDE_COLOURS.values(), person_colour(1), person_colour(2)):
        assert np.abs(border - colour).max(axis=1).min() > 40


def test_the_same_frames_give_the_same_pictures():
    frames = [seen_result([(i / 20, 0, 3.0)], index=i, time=i / 25) for i in range(10)]
    first, second = Inset((160, 160)), Inset((160, 160))
    for frame in frames:
        assert np.array_equal(first.render(frame), second.render(frame))
