"""The vertical from people: right where they stand, unknown if they do not, mirrored in a mirrored image."""

import numpy as np
import pytest
from walker import filmed, standing, walking

from benchmarks.world.steps import angle_between
from pose.structures.sequences import mirror_poses
from pose.world.frame import LEVEL_UP, World, rotation_of, up_of
from pose.world.gravity import BodyMotion, find_gravity


def standing_of(world, **camera):
    lifted, _, up = filmed(world, **camera)
    return BodyMotion(lifted.joints.astype(float), lifted.root.astype(float), lifted.times), up


def test_world_transform_round_trips(rng):
    world = World(rotation_of(up_of(-20, 7)), -1.3, "given", 0.0)
    points = rng.normal(size=(5, 3))
    np.testing.assert_allclose(world.to_camera(world.place(points)), points, atol=1e-12)
    np.testing.assert_allclose(world.rotation @ world.rotation.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(world.rotation) == pytest.approx(1)


def test_pitch_and_roll_are_measured():
    assert up_of(0, 0) == pytest.approx(LEVEL_UP)
    up = up_of(-30, 0)  # looks down: the vertical leans back into the image, away from the view
    assert up[2] < 0
    assert angle_between(up, LEVEL_UP) == pytest.approx(30)
    assert up_of(0, 10)[0] < 0  # the camera turned clockwise: the world in its image turns the other way
    assert angle_between(up_of(0, 10), LEVEL_UP) == pytest.approx(10)


def test_a_camera_that_looks_straight_down_has_a_world():
    world = World(rotation_of(up_of(-90, 0)), 0.0, "given", 0.0)
    np.testing.assert_allclose(world.rotation @ world.rotation.T, np.eye(3), atol=1e-9)


@pytest.mark.parametrize(("pitch", "roll"), [(0, 0), (-15, 3), (10, -6), (-25, 0)])
def test_standing_bodies_give_the_vertical(pitch, roll):
    person, up = standing_of(standing(), pitch=pitch, roll=roll)
    world = find_gravity([person])
    assert world.found_by == "bodies"
    assert angle_between(world.up, up) < 3


def test_feet_improve_the_vertical_of_leaning_bodies():
    lean = walking(6.0)
    lean[:, [7, 8, 9, 10, 11, 12, 13, 14, 15, 16], 0] += 0.15  # to the side, all the time
    ways = [standing_of(lean, pitch=-12, turn=turn, distance=9) for turn in (45, -45)]
    up = ways[0][1]
    world = find_gravity([person for person, _ in ways])
    still = find_gravity([BodyMotion(one.joints[:40], one.root[:40], one.times[:40]) for one, _ in ways])
    assert world.found_by == "feet"
    assert angle_between(world.up, up) < angle_between(still.up, up) / 2
    assert world.sigma_degrees < still.sigma_degrees


def test_feet_on_one_spot_do_not_tilt_the_vertical(rng):
    """Their depth errs by 10 cm, and as the camera looks down, wrong depths lie on a plane that rises to the camera."""
    person, up = standing_of(standing(8.0), pitch=-15)
    slow = np.convolve(rng.normal(size=len(person.root) + 60), np.hanning(61), mode="valid")
    root = person.root * (1 + 0.1 / 5 * slow / slow.std())[:, None]
    found = find_gravity([BodyMotion(person.joints, root, person.times)])
    assert found.found_by == "bodies"
    assert angle_between(found.up, find_gravity([person]).up) < 0.5
    assert angle_between(found.up, up) < 3


def test_feet_off_the_floor_are_ignored():
    """One ankle far below nine others: the low percentile of their heights lies between, where no foot is."""
    person, up = standing_of(standing(5 / 30), pitch=-10)
    joints = person.joints.copy()
    joints[0, 3] -= up
    world = find_gravity([BodyMotion(joints, person.root, np.arange(5) * 10.0)])
    assert world.found_by == "bodies"
    assert angle_between(world.up, up) < 3
    assert 0 < world.sigma_degrees < 12


def test_no_upright_person_gives_unknown_vertical():
    person, _ = standing_of(standing())
    lying = BodyMotion(person.joints[..., [1, 0, 2]], person.root, person.times)
    for people in ([], [lying]):
        world = find_gravity(people)
        assert world.found_by == "unknown"
        assert world.confidence == 0
        assert world.up == pytest.approx(LEVEL_UP)


def test_a_mirrored_image_has_a_mirrored_vertical():
    person, _ = standing_of(walking(4.0), pitch=-10, roll=5, turn=30)
    side = np.array([-1, 1, 1])
    mirrored = BodyMotion(
        mirror_poses(person.joints.astype(np.float32)).astype(float), person.root * side, person.times
    )
    assert find_gravity([mirrored]).up == pytest.approx(find_gravity([person]).up * side, abs=1e-6)
