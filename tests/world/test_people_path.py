"""The path of a camera that the background does not show, from the standing feet of people with known truth."""

import numpy as np
import pytest
from test_carried import CAMERA, FRAMES, PLACES, TURNS, path_of, results_of
from test_scene_worlds import HIGH, LOW, clip
from walker import filmed, walking

from pose.structures.skeletons import H36M17
from pose.world import placing
from pose.world.camera_motion.decision import Decision
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.path import static_path
from pose.world.camera_motion.verdict import STATIC, TRANSLATING, CameraMotion, SceneMotion
from pose.world.carried import RunData
from pose.world.clean import Steps
from pose.world.placing import path_from_feet, place_run
from pose.world.run import PlacedRun


@pytest.fixture(scope="module")
def walkers():
    views = {"pitch": -6, "distance": 7}
    return {n + 1: filmed(walking(FRAMES / 30), turn=turn, **views)[0] for n, turn in enumerate((60, -50))}


def found_path(walkers, turns=TURNS, places=PLACES):
    path = path_of(None, turns)
    with PlacedRun(results_of(walkers, turns, places), H36M17, CAMERA, Steps(path=path)) as run:
        return path_from_feet(path, run.scenes, run.foot_velocities), run.scenes[0].ground.path_scale


def test_standing_feet_give_the_path_of_the_camera(walkers):
    found, scale = found_path(walkers)
    away = np.linalg.norm(scale * found.path.positions - (PLACES - PLACES[0]), axis=1)
    assert away.max() < 0.1 + 0.15 * np.linalg.norm(PLACES[-1] - PLACES[0])
    assert away[-1] < 2 * found.sigma
    assert found.seen > 0.9


def test_path_of_a_static_camera_is_short(walkers):
    found, _ = found_path(walkers, places=0 * PLACES)
    assert found.distance < 0.15


def test_uncertainty_grows_where_no_feet_are_in_view(walkers):
    path = path_of(None, TURNS)
    with PlacedRun(results_of(walkers, TURNS, PLACES), H36M17, CAMERA, Steps(path=path)) as run:
        early = [rows[rows[:, 0] < 1.5] for rows in run.foot_velocities]
        part = path_from_feet(path, run.scenes, early)
        whole = path_from_feet(path, run.scenes, run.foot_velocities)
    assert part.sigma > 2 * whole.sigma
    assert part.seen < 0.8
    every, early = whole.path.position_sigmas, part.path.position_sigmas
    assert (np.diff(early) >= 0).all()
    np.testing.assert_allclose(early[path.times < 0.5], every[path.times < 0.5], atol=0.02)
    assert early[-1] > 2 * every[-1] > 0
    assert part.path.view(path.times[-1]).position_sigma == early[-1]


def test_without_standing_feet_there_is_no_path(walkers):
    path = path_of(None, TURNS)
    with PlacedRun(results_of(walkers, TURNS, PLACES), H36M17, CAMERA, Steps(path=path)) as run:
        assert path_from_feet(path, run.scenes, [np.zeros((0, 6))]) is None


def test_feet_give_the_path_only_in_the_scenes_that_the_background_does_not_decide(monkeypatch):
    results = clip(LOW, HIGH, {**LOW, "pitch": -15})
    times = np.arange(len(results)) / 30
    begins, ends = [0.0, 3.0, 6.0], [3.0, 6.0, float(times[-1])]
    kinds = [STATIC, TRANSLATING, STATIC]
    scenes = tuple(
        SceneMotion(n, begins[n], ends[n], CameraMotion(kind), 90, world=kind == STATIC) for n, kind in enumerate(kinds)
    )
    path = static_path(times, np.array(begins))
    moved = "the camera moved from its place in scene 2: no world is written there (--camera rotating ignores that)"
    decision = Decision(CameraMotion(STATIC, scenes=scenes), path, measured=path, notices=(moved,))
    monkeypatch.setattr(placing, "decide", lambda *_: decision)
    monkeypatch.setattr(MotionLog, "peopled", True)
    run, found = place_run(RunData(results, H36M17, CAMERA), MotionLog(), "auto", Steps())
    with run, PlacedRun(results, H36M17, CAMERA, Steps(path=path)) as plain:
        joints, expected = (np.array([one.placed.joints[0] for one in each]) for each in (run, plain))
        views = np.array([one.view.position for one in run])
    assert np.isfinite(joints).all()
    np.testing.assert_allclose(joints[:90], expected[:90], atol=1e-3)
    assert np.ptp(views[180:], axis=0).max() < 1e-9, "the third camera is static"
    assert found.motion.distance < 0.3
    (notice,) = found.notices
    assert notice.startswith("the camera moved from its place in scene 2: standing feet give its path")
    assert notice.endswith("(--camera rotating ignores that)")
    assert all(scene.world for scene in found.motion.scenes)
