"""Feet: what stands is held, what slides slides, what jumps jumps, and no position jumps."""

import numpy as np
import pytest
from walker import ANKLES, BONE, FPS, standing, walking

from benchmarks.world.steps import foot_slides
from pose.structures.skeletons import H36M17
from pose.structures.two_bones import place_middle
from pose.world.contacts import common_floor, find_contacts, ground_below, own_floor
from pose.world.feet import exclude_sliding, hold_feet, path_correction


def locked(world):
    times = np.arange(len(world)) / FPS
    ankles = world[:, ANKLES]
    stands = exclude_sliding(ankles, find_contacts(ankles, times)[0], times)
    moved = world + path_correction(ankles, stands, times)[:, None]
    return hold_feet(moved, stands, times), stands


def wobbling(world, size=0.02):
    """The body sways as a lifter's root does: slowly, together with the feet."""
    t = np.arange(len(world)) / FPS
    sway = np.stack([np.sin(2 * np.pi * 1.3 * t), 0.3 * np.sin(2 * np.pi * 0.9 * t), np.sin(2 * np.pi * 0.7 * t)], 1)
    return world + size * sway[:, None]


def test_walk_contacts_are_found():
    world = walking(4.0)
    times = np.arange(len(world)) / FPS
    found, probability = find_contacts(world[:, ANKLES], times)
    speed = np.linalg.norm(np.gradient(world[:, ANKLES], times, axis=0), axis=-1)
    assert (found == (speed < 0.6)).mean() > 0.93
    assert (probability[found] > 0.5).mean() > 0.9
    assert ((probability >= 0) & (probability <= 1)).all()


def test_single_frames_neither_end_nor_start_contacts():
    times = np.arange(60) / FPS
    ankles = standing(2.0)[:, ANKLES].copy()
    ankles[30, 0] += [0.03, 0, 0]
    assert find_contacts(ankles, times)[0][:, 0].all()
    ankles[:, 1, 1] += 0.5  # the right foot in the air, still
    assert not find_contacts(ankles, times)[0][:, 1].any()


def test_raised_support_counts_as_contact_and_jumps_do_not():
    times = np.arange(120) / FPS
    world = standing(4.0)
    world[40:, :, 1] += 0.5  # steps onto a stool
    world[80:84, :, 1] += 0.3  # hops there
    ground = ground_below(world, times)
    assert np.abs(ground[60:] - 0.5).max() < 0.01
    assert np.abs(ground[:40]).max() < 0.01
    on_it = world[:, ANKLES] - ground[:, None, None] * [0, 1, 0]
    found = find_contacts(on_it, times)[0]
    assert found[60:75].all()
    assert not found[81:83].any()
    assert not find_contacts(world[:, ANKLES], times)[0][50:].any()


def test_standing_feet_stop_sliding():
    true = walking(4.0)
    before = wobbling(true)
    after, stands = locked(before)
    assert stands.mean() > 0.4
    slides = [foot_slides(joints[:, ANKLES], true[:, ANKLES]).mean() for joints in (before, after)]
    assert slides[1] < slides[0] / 3
    assert (
        np.linalg.norm(after[:, 0] - true[:, 0], axis=-1).mean()
        < np.linalg.norm(before[:, 0] - true[:, 0], axis=-1).mean()
    )


def test_foot_lock_rotates_the_leg_and_keeps_the_knee():
    """A leg that is nearly straight would move its knee by 9 cm for a foot that is 2 cm too high."""
    world = standing(3.0)
    knee, ankle = H36M17.index("left_knee"), ANKLES[0]
    t = np.arange(len(world)) / FPS
    times, stands = t, np.ones((len(world), 2), bool)
    before = world.copy()
    before[:, ankle, 1] += 0.02 * np.sin(2 * np.pi * t)
    before[:, ankle, 0] += 0.03 * np.sin(3 * np.pi * t)
    place_middle(before, (H36M17.index("left_hip"), knee, ankle), (BONE, BONE))
    after = hold_feet(before, stands, times)
    assert after[:, ankle, 0].std() < 0.5 * before[:, ankle, 0].std()
    moved = np.linalg.norm(after - before, axis=-1)
    assert moved[:, knee].max() < moved[:, ankle].max()


def test_correct_motion_hardly_changes():
    true = walking(4.0)
    assert np.abs(locked(true)[0] - true).max() < 0.06
    assert np.abs(locked(true)[0] - true).mean() < 0.006
    still = standing(4.0)
    assert np.abs(locked(still)[0] - still).max() < 0.002


@pytest.mark.parametrize("speed", [0.25, 0.35])
def test_real_slide_is_kept(speed):
    """A person glides along with both feet on the floor, to the side of the view."""
    world = standing(5.0)
    world[..., 0] += (speed * np.arange(len(world)) / FPS)[:, None]
    after, stands = locked(world)
    assert not stands.any()
    np.testing.assert_allclose(after, world, atol=1e-9)


def test_real_jump_is_kept():
    world = standing(3.0)
    t = np.arange(len(world)) / FPS
    rise = np.where((t > 1) & (t < 1.5), 0.3 * np.sin(np.pi * np.clip((t - 1) / 0.5, 0, 1)), 0)
    world[..., 1] += rise[:, None]
    after, stands = locked(world)
    flying = rise > 0.12
    assert not stands[flying].any()
    np.testing.assert_allclose(after[flying][..., 1], world[flying][..., 1], atol=0.01)


def test_mirrored_input_gives_mirrored_output():
    world = wobbling(walking(3.0))
    flip = list(H36M17.flip_order)
    mirrored = world[:, flip] * [-1, 1, 1]
    after, again = locked(world)[0], locked(mirrored)[0]
    np.testing.assert_allclose(again, after[:, flip] * [-1, 1, 1], atol=1e-9)


def test_floor_is_robust_to_single_frames():
    world = walking(4.0)
    times = np.arange(len(world)) / FPS
    ankles = world[:, ANKLES].copy()
    ankles[50] -= [0, 2.0, 0]
    assert own_floor(ankles, times) == pytest.approx(0.0, abs=0.01)
    assert own_floor(ankles[:2], times[:2]) is None
    assert common_floor([0.0, -0.1, 3.0], [10.0, 12.0, 5.0]) == 0.0


def test_feet_outside_the_image_do_not_set_the_floor():
    """Whose legs are guessed for half of the time, half a metre too low."""
    ankles = standing(4.0)[:, ANKLES].copy()
    ankles[:60, :, 1] -= 0.5
    seen = np.repeat(np.arange(120) >= 60, 2).reshape(120, 2)
    times = np.arange(120) / FPS
    assert own_floor(ankles, times, seen=seen) == pytest.approx(0.0, abs=0.01)
    assert own_floor(ankles, times) < -0.3
    assert own_floor(ankles, times, seen=np.zeros_like(seen)) < -0.3
