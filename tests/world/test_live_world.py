"""People put into their world while they are seen: what settles, what may not jump, and what is forgotten."""

import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from walker import ANKLES, FPS, LENS, SIZE, filmed, standing, walking

from benchmarks.world.rooms import image_of
from benchmarks.world.steps import angle_between
from pose.structures.camera import Camera, intrinsics_from_fov
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.world import live_scene
from pose.world.clean import Steps
from pose.world.frame import UNKNOWN, rotation_of, up_of
from pose.world.height import stature
from pose.world.live import LiveWorld
from pose.world.rules import LIVE
from pose.world.scene.lines import find_segments

NOISE_PX, NOISE_M = 3.0, 0.02


def frames(lifted, seen, number=1, start=0.0):
    """A film as live results, one a frame."""
    box, one = np.zeros((1, 4), np.float32), np.ones(1, np.float32)
    for i, time in enumerate(lifted.times):
        people = People(
            i, float(time) + start, np.array([number]), box, one, seen.keypoints[i][None], seen.scores[i][None]
        )
        yield FrameResult(people, Poses3D(lifted.joints[i][None], lifted.root[i][None], lifted.sigma[i][None]))


def noisy(rng, lifted, seen):
    joints = lifted.joints + NOISE_M * rng.standard_normal(lifted.joints.shape).astype(np.float32)
    joints -= joints[:, :1]
    root = lifted.root * (1 + 0.03 * rng.standard_normal((len(lifted.root), 1)).astype(np.float32))
    keypoints = seen.keypoints + NOISE_PX * rng.standard_normal(seen.keypoints.shape).astype(np.float32)
    return replace(lifted, joints=joints, root=root), replace(seen, keypoints=keypoints)


def run(world, results):
    """Results placed, and the vertical that was shown with each."""
    placed, ups = [], []
    for result in results:
        placed.append(world.place(result, H36M17))
        ups.append(world.world.up)
    return placed, np.array(ups)


def bones(joints):
    parents, children = np.array(H36M17.edges).T
    return np.linalg.norm(joints[..., children, :] - joints[..., parents, :], axis=-1)


def stacked(placed, field="joints"):
    return np.stack([getattr(one.placed, field)[0] for one in placed])


def test_gravity_is_unknown_at_first_then_found_and_never_jumps():
    lifted, seen, up = filmed(walking(8.0), pitch=-15, roll=3, distance=13)
    world = LiveWorld(seen.camera)
    assert world.world.found_by == UNKNOWN
    placed, ups = run(world, frames(lifted, seen))
    assert world.world.found_by != UNKNOWN
    assert angle_between(ups[-1], up) < 2
    turned = [angle_between(a, b) for a, b in pairwise(ups)]
    assert max(turned) < 1.0
    joints = stacked(placed)
    true = lifted.joints + lifted.root[:, None]
    assert np.abs(np.diff(joints, axis=0)).max() < np.abs(np.diff(true, axis=0)).max() + 0.06
    assert np.abs(joints[90:, ANKLES, 1].min(axis=1) - 0.08).mean() < 0.04


def test_lines_of_a_room_decide_gravity_and_focal_length_live():
    """The lens is taken for one of 55 degrees; the view tells the focal length, for those who draw 3D on the image."""
    lifted, seen, up = filmed(standing(2.5), pitch=-15, roll=3, distance=6, height=1.6)
    matrix = intrinsics_from_fov(SIZE, 75.0)
    image = image_of(np.random.default_rng(3), "room", rotation_of(up).T, 1.6, matrix, SIZE)
    world = LiveWorld(Camera.of(SIZE))
    film = list(frames(lifted, seen))
    segments = find_segments(image, film[0].people, H36M17)
    film[0] = replace(film[0], people=replace(film[0].people, segments=segments))
    placed, _ = run(world, film[::5])
    assert world.world.found_by == "lines"
    assert angle_between(world.world.up, up) < 2.5  # of which the display lags behind 1.5
    ratio = matrix[0, 0] / LENS[0, 0]
    assert world.world.focal == pytest.approx(ratio, rel=0.1)
    assert placed[-1].view.zoom == pytest.approx(world.world.focal)
    assert placed[-1].poses.root[0, 2] / lifted.root[-1, 2] == pytest.approx(ratio, rel=0.12)


def test_scene_solved_in_a_thread_is_that_of_the_frames_before(monkeypatch):
    """Frames do not wait for it, and the people who leave meanwhile do not stop it."""
    lifted, seen, _ = filmed(standing(1.0))
    entered, going, found = threading.Event(), threading.Event(), live_scene.find_world

    def slow(*arguments, **options):
        entered.set()
        assert going.wait(60)
        return found(*arguments, **options)

    monkeypatch.setattr(live_scene, "find_world", slow)
    world, film = LiveWorld(seen.camera, background=True), list(frames(lifted, seen))
    placed, _ = run(world, film[:10])
    assert entered.is_set()
    assert world.world.found_by == UNKNOWN
    assert np.isfinite(stacked(placed)).all()
    going.set()
    world._ground._solver._thread.join()
    run(world, film[10:12])
    assert world.heights[1][0] == pytest.approx(1.70, abs=0.06)


def test_settled_scene_is_solved_less_often_until_a_person_enters(monkeypatch):
    lifted, seen, _ = filmed(standing(24.0))
    solved, start = [], live_scene.SceneSolver.start

    def noted(self, people, now, *others):
        solved.append(max(one.poses[-1].time for one in people.values()))
        start(self, people, now, *others)

    monkeypatch.setattr(live_scene.SceneSolver, "start", noted)
    world = LiveWorld(seen.camera)
    film = list(frames(lifted, seen))[::5]
    run(world, film)
    assert np.diff(solved).max() > 2 * LIVE.update_interval_s
    entered = film[-1].time + 0.2
    others = frames(replace(lifted, root=lifted.root + np.float32(1)), seen, number=2, start=entered)
    run(world, [next(others)])
    assert solved[-1] == pytest.approx(entered, abs=LIVE.new_person_interval_s)


def test_given_height_scales_pose_and_distance(rng):
    lifted, seen, _ = filmed(walking(2.0))
    world = LiveWorld(seen.camera, Steps(heights={7: 1.2, None: 2.0}))
    (*_, last), _ = run(world, frames(lifted, seen, number=7))
    assert world.heights == {7: (1.2, 0.0)}
    assert stature(bones(last.placed.joints[0])) == pytest.approx(1.2, abs=1e-3)
    own = LiveWorld(seen.camera)
    (*_, free), _ = run(own, frames(lifted, seen, number=7))
    height, sigma = own.heights[7]
    assert last.poses.root[0, 2] / free.poses.root[0, 2] == pytest.approx((1.2 - 0.18) / (height - 0.18), rel=0.02)
    assert 0.03 < sigma / height < 0.1


def test_live_smoothing_removes_noise_and_keeps_fast_motion(rng):
    lifted, seen, _ = filmed(walking(4.0, speed=2.0, step=0.35), distance=8, turn=90)
    shaken = noisy(rng, lifted, seen)
    true = lifted.joints + lifted.root[:, None]

    def jerk(joints):
        return np.linalg.norm(np.diff(joints.astype(float), n=3, axis=0), axis=-1).mean()

    def error(joints):
        return np.linalg.norm(joints - joints[:, :1] - true + true[:, :1], axis=-1)[30:].mean()

    def camera(placed):
        return np.stack([one.poses.joints[0] + one.poses.root[0] for one in placed])

    given = Steps(up=up_of(0, 0), heights={None: stature(bones(lifted.joints[0]))})
    smooth = camera(run(LiveWorld(seen.camera, given), frames(*shaken))[0])
    rough = camera(run(LiveWorld(seen.camera, replace(given, smooth=False)), frames(*shaken))[0])
    assert jerk(smooth) < 0.85 * jerk(rough)
    assert jerk(rough) < jerk(shaken[0].joints + shaken[0].root[:, None]) / 2
    assert error(smooth) < error(rough)
    exact = camera(run(LiveWorld(seen.camera, given), frames(lifted, seen))[0])
    assert error(exact) < 0.012  # what smoothing costs at feet of 4 m/s
    reach = np.ptp(true[30:, ANKLES, 2] - true[30:, :1, 2])
    assert np.ptp(exact[30:, ANKLES, 2] - exact[30:, :1, 2]) > 0.95 * reach


def test_live_contacts_are_standing_feet_only():
    lifted, seen, _ = filmed(walking(5.0), distance=8, turn=90)
    contacts = stacked(run(LiveWorld(seen.camera), frames(lifted, seen))[0], "contacts")
    ankles = (lifted.joints + lifted.root[:, None])[:, ANKLES]
    speed = np.linalg.norm(np.diff(ankles, axis=0, prepend=ankles[:1]), axis=-1) * FPS
    late = slice(60, None)
    assert (contacts[late] > 0.5)[speed[late] < 0.05].mean() > 0.7
    assert (contacts[late] > 0.5)[speed[late] > 2].mean() < 0.15  # speeds are those of the last 0.2 s


def test_frame_without_a_view_keeps_positions():
    lifted, seen, _ = filmed(standing())
    root, scores = lifted.root.copy(), seen.scores.copy()
    root[60:70] *= 50
    scores[60:70, 1:] = 0
    film = replace(lifted, root=root), replace(seen, scores=scores)
    placed, _ = run(LiveWorld(seen.camera), frames(*film))
    depth = np.array([one.poses.root[0, 2] for one in placed])
    assert np.abs(depth - lifted.root[:, 2]).max() < 0.5
    sigma = stacked(placed, "root_sigma")
    assert sigma[69] > sigma[59]


def test_mirrored_people_give_mirrored_people():
    lifted, seen, _ = filmed(walking(4.0), pitch=-8, roll=2)
    side, flip = np.array([-1, 1, 1], np.float32), np.array(H36M17.flip_order)
    camera = seen.camera.mirrored()
    keypoints = seen.keypoints[:, flip].copy()
    keypoints[..., 0] = seen.camera.size[0] - 1 - keypoints[..., 0]
    other = replace(lifted, joints=(lifted.joints * side)[:, flip], root=lifted.root * side)
    here, _ = run(LiveWorld(seen.camera), frames(lifted, seen))
    there, _ = run(LiveWorld(camera), frames(other, replace(seen, keypoints=keypoints, camera=camera)))
    np.testing.assert_allclose(stacked(there), (stacked(here) * side)[:, flip], atol=0.06)  # candidates are drawn


def test_person_without_3d_has_no_position():
    lifted, seen, _ = filmed(standing(2.0))
    joints = lifted.joints.copy()
    joints[30:33] = np.nan
    placed, _ = run(LiveWorld(seen.camera), frames(replace(lifted, joints=joints), seen))
    assert np.isnan(placed[31].placed.joints).all()
    assert np.isnan(placed[31].placed.moved).all()
    assert (placed[31].placed.contacts == 0).all()
    assert np.isfinite(stacked(placed)[33:]).all()


def test_departed_people_are_forgotten_and_the_world_kept(monkeypatch):
    """Nine visitors, one after the other: memory has room for three."""
    lifted, seen, up = filmed(walking(1.0), pitch=-12)
    monkeypatch.setattr(LIVE, "max_people", 3)
    world = LiveWorld(seen.camera)
    most = 0
    for visitor in range(9):
        run(world, frames(lifted, seen, number=visitor + 1, start=2.5 * visitor))
        most = max(most, len(world._people), len(world._ground._people))
    assert most <= 3 + 1
    assert angle_between(world.world.up, up) < 3
    poses = sum(len(one.stored.poses) for one in world._ground._people.values())
    assert poses <= (3 + 1) * (LIVE.memory_s / LIVE.store_interval_s + 1)


@pytest.mark.parametrize(
    "steps", [Steps(), Steps(smooth=False, depth=False, bones=False), Steps(heights={None: 1.8}), Steps(up=up_of(5, 5))]
)
def test_degenerate_input_gives_finite_or_missing_output(rng, steps):
    """Points of no size, kilometres away, infinite or missing; pauses of microseconds and minutes."""
    world, time = LiveWorld(filmed(standing(0.1))[1].camera, steps), 0.0
    for _ in range(40):
        n = int(rng.integers(0, 4))
        time += float(rng.choice([1e-6, 0.01, 0.033, 0.5, 3, 500]))
        joints, root, sigma, keypoints = (
            (rng.standard_normal((n, *shape)) * rng.choice(sizes)).astype(np.float32)
            for shape, sizes in (((17, 3), [0, 0.3, 1e4]), ((3,), [0, 3, 500]), ((17,), [0, 50]), ((17, 2), [0, 1e6]))
        )
        for values in (joints, root, sigma):
            if n and rng.random() < 0.1:
                values.flat[rng.integers(values.size)] = rng.choice([np.nan, np.inf, -np.inf])
        ids = rng.choice(6, n, replace=False).astype(np.int64)
        seen = (rng.random((n, 17)) > 0.3).astype(np.float32)
        people = People(0, time, ids, np.zeros((n, 4), np.float32), np.ones(n, np.float32), keypoints, seen)
        placed = world.place(FrameResult(people, Poses3D(joints, root, np.abs(sigma))), H36M17)
        assert placed.placed.joints.shape == (n, 17, 3)
        assert np.isfinite(world.world.rotation).all()
        assert np.isfinite(world.world.floor)
