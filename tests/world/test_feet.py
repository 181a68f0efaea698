"""Feet: what stands is held, what slides slides, what jumps jumps, and no position jumps."""

from dataclasses import replace

import numpy as np
import pytest
from walker import ANKLES, BONE, FPS, filmed, standing, walking

from benchmarks.world.steps import foot_slides
from pose.structures.camera import Camera, project
from pose.structures.skeletons import H36M17
from pose.structures.two_bones import place_middle
from pose.structures.types import FrameResult, People, Poses3D
from pose.world.camera_motion.decision import Decision
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.verdict import ROTATING, UNKNOWN, ZOOMING, CameraMotion
from pose.world.clean import Steps
from pose.world.contacts import common_floor, find_contacts, ground_below, own_floor
from pose.world.feet import exclude_sliding, hold_feet, path_correction
from pose.world.footing import check_with_feet, find_rest_densities, lower_foot_velocities
from pose.world.run import PlacedRun


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


CERTAIN = CameraMotion(ROTATING, 1.0, zoom=1.0, focal_ratio=1.0, focal_sigma=0.01)
UNCERTAIN = CameraMotion(ZOOMING, 1.0, zoom=1.2)


def path_of(times):
    count = len(times)
    return CameraPath(
        times, np.tile(np.eye(3), (count, 1, 1)), np.ones(count), np.full(count, 0.001), np.zeros(count, np.int64)
    )


def run_of(world, drift=(0.0, 0.0, 0.0), feet=1.0):
    """The footing of a person that a rotation does not explain: everything moves by `drift` m/s."""
    lifted, seen, _ = filmed(world, pitch=-6, turn=60, distance=6)
    times, results = lifted.times, []
    for t, time in enumerate(times.tolist()):
        root = (lifted.root[t] + time * np.array(drift)).astype(np.float32)
        pixels = project(lifted.joints[t] + root, seen.camera.matrix)[None].astype(np.float32)
        ones = np.ones((1, 17), np.float32)
        scores = ones.copy()
        scores[:, ANKLES] = feet
        box = np.concatenate([pixels.min(axis=1), pixels.max(axis=1)], axis=1)
        people = People(t, time, np.array([1]), box, ones[:, 0], pixels, scores)
        results.append(FrameResult(people, Poses3D(lifted.joints[t][None], root[None], 30 * ones)))
    with PlacedRun(results, H36M17, Camera.of(seen.camera.size, seen.camera.matrix), Steps(path=path_of(times))) as run:
        return run.foot_velocities


def decided(motion, footing):
    return check_with_feet(Decision(motion, path_of(np.arange(3.0)), check_feet=True), footing)


@pytest.mark.parametrize("world", [standing(), walking(4.0)], ids=["standing", "walking"])
def test_standing_feet_support_the_camera_motion(world):
    footing = run_of(world)
    assert find_rest_densities(footing).at_rest.min() > 0.8
    for motion in (CERTAIN, UNCERTAIN):
        found = decided(motion, footing).motion
        assert found.kind == motion.kind
        assert found.drift < 0.05


@pytest.mark.parametrize("drift", [(0.4, 0, 0), (0, 0, 0.8)])
@pytest.mark.parametrize("world", [standing(), walking(4.0)], ids=["standing", "walking"])
def test_sliding_feet_end_the_world(world, drift):
    found = decided(CERTAIN, run_of(world, drift))
    assert (found.motion.kind, found.path) == (UNKNOWN, None)
    assert "standing feet slide" in found.problem


def test_a_constant_slow_drift_ends_the_world():
    """Each window alone would support the camera."""
    rng = np.random.default_rng(0)
    times = np.arange(0, 30, 1 / 30)
    velocities = rng.normal((0.17, 0), 0.12, (len(times), 2))
    samples = np.column_stack([times, velocities, np.full(len(times), 1 / 30)])
    assert (find_rest_densities([samples]).at_rest > 0.35).all()
    found = decided(CERTAIN, [samples])
    assert found.motion.kind == UNKNOWN
    assert "standing feet" in found.problem
    slower = samples - [0, 0.09, 0, 0]
    assert decided(CERTAIN, [slower]).path is not None


def test_without_feet_the_background_must_be_certain():
    assert decided(CERTAIN, []).path is not None
    found = decided(UNCERTAIN, [np.zeros((0, 6))])
    assert found.motion.kind == UNKNOWN
    assert "no feet stand" in found.problem


@pytest.mark.parametrize(
    ("change", "certain"),
    [({}, True), ({"focal_ratio": 0.8}, False), ({"focal_sigma": 0.3}, False), ({"zoom": 1.1}, False),
     ({"focal_ratio": float("nan")}, False), ({"kind": "shaking", "focal_ratio": float("nan")}, True)],
)  # fmt: skip
def test_reliable_backgrounds_are_recognised(change, certain):
    assert replace(CERTAIN, **change).excludes_translation is certain


def test_few_frames_give_no_verdict():
    assert lower_foot_velocities(np.zeros((2, 17, 3)), np.array([0.0, 0.1]), np.ones((2, 2), bool)).shape == (0, 6)
    assert len(find_rest_densities([]).at_rest) == 0


def test_feet_out_of_view_support_no_camera():
    footing = run_of(standing(), feet=0.0)
    assert sum(map(len, footing)) == 0
    assert decided(UNCERTAIN, footing).motion.kind == UNKNOWN
    assert decided(CERTAIN, footing).motion.kind == ROTATING
