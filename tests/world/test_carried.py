"""People before a carried camera: the world of one that stands, and the scale of its path."""

import json
from dataclasses import replace

import numpy as np
import pytest
from walker import LENS, SIZE, average, filmed, walking

from pose.results import JsonWriter, MotionInfo, NpzWriter, RunInfo, WorldInfo, load_poses
from pose.structures.camera import Camera, project
from pose.structures.camera_rotations import to_matrix
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.world import carried, placing
from pose.world.camera_motion.decision import Decision
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.verdict import ROTATING, TRANSLATING, CameraMotion
from pose.world.carried import RunData, Scale, find_scale
from pose.world.clean import Steps, prepare
from pose.world.placing import place_run
from pose.world.rules import TRAVEL
from pose.world.run import PlacedRun
from pose.world.store import SeenPeople

CAMERA, FRAMES, DEPTH = Camera.of(SIZE, LENS), 120, 5.0
SECONDS = np.arange(FRAMES) / 30
TURNS = to_matrix(np.radians(np.stack([2 * np.sin(3 * SECONDS), 8 * np.sin(SECONDS), 0 * SECONDS], axis=1)))
PLACES = np.stack([0.5 * SECONDS, 0.02 * np.sin(6 * SECONDS), 0.2 * SECONDS], axis=1)


def results_of(people, turns=None, places=None):
    """What a camera that moves so gives of people (by id, lifted by one that stands), without error."""
    turns = np.tile(np.eye(3), (FRAMES, 1, 1)) if turns is None else turns
    places = np.zeros((FRAMES, 3)) if places is None else places
    results = []
    for t in range(FRAMES):
        joints = np.array([one.joints[t].astype(np.float64) @ turns[t] for one in people.values()])
        root = np.array([(one.root[t] - places[t]) @ turns[t] for one in people.values()])
        pixels = np.array([project(a + b, LENS) for a, b in zip(joints, root, strict=True)]).astype(np.float32)
        boxes = np.concatenate([pixels.min(axis=1), pixels.max(axis=1)], axis=1)
        ones = np.ones((len(people), 17), np.float32)
        found = People(t, t / 30, np.array(list(people)), boxes, ones[:, 0], pixels, ones)
        results.append(FrameResult(found, Poses3D(joints.astype(np.float32), root.astype(np.float32), 30 * ones)))
    return results


def both(one, other):
    """The arrays of two people or poses, one after the other."""
    parts = {n: (getattr(one, n), getattr(other, n)) for n in type(one).__slots__}
    arrays = {n: np.concatenate(part) for n, part in parts.items() if isinstance(part[0], np.ndarray)}
    return replace(one, **arrays)


def path_of(places=None, turns=None):
    turns = np.tile(np.eye(3), (FRAMES, 1, 1)) if turns is None else turns
    return CameraPath(SECONDS, turns, np.ones(FRAMES), np.full(FRAMES, 1e-3), np.zeros(FRAMES, np.int64), places)


def works_of(results, path):
    with SeenPeople(H36M17, CAMERA, None) as people:
        people.gather(results)
        steps = Steps(path=replace(path, positions=None))
        return {number: prepare(number, person, people.frames, steps) for number, person in people.items()}


@pytest.fixture(scope="module")
def walk():
    return filmed(average(walking(FRAMES / 30)), pitch=-6, turn=60, distance=7)[0]


def joints_of(results):
    return np.array([result.placed.joints[0] for result in results], np.float64)


def test_translating_camera_gives_the_world_of_a_static_one(walk):
    with PlacedRun(results_of({1: walk}), H36M17, CAMERA) as still:
        true, world = joints_of(still), still.world
    path = path_of(PLACES, TURNS)
    with PlacedRun(results_of({1: walk}, TURNS, PLACES), H36M17, CAMERA, Steps(path=path)) as run:
        moving, found = list(run), run.world
    assert np.degrees(np.arccos(min(1, world.up @ found.up))) < 0.3
    off = np.linalg.norm(joints_of(moving) - true, axis=-1)
    assert np.median(off) < 0.02
    assert off.max() < 0.1
    for before, after in zip(results_of({1: walk}, TURNS, PLACES), moving, strict=True):
        pixels = project(after.poses.joints[0].astype(np.float64) + after.poses.root[0], LENS)
        assert np.abs(pixels - before.people.keypoints[0]).mean() < 8
        np.testing.assert_allclose(after.view.position, PLACES[before.index], atol=0.02)


def test_standing_feet_give_the_scale_of_the_path(walk):
    """The structure's unit is 4 m."""
    path = path_of(PLACES / 4, TURNS)
    scale = find_scale(works_of(results_of({1: walk}, TURNS, PLACES), path), path, DEPTH / 4)
    assert isinstance(scale, Scale)
    assert scale.value == pytest.approx(4, rel=0.05)
    assert 0.1 < scale.sigma < 0.15


def test_contradicting_people_give_no_scale(walk, monkeypatch):
    """One of them moves as if the camera had gone half as far: a treadmill, or a wrong body."""
    pairs = zip(results_of({1: walk}, TURNS, PLACES), results_of({2: walk}, TURNS, PLACES / 2), strict=True)
    results = [FrameResult(both(a.people, b.people), both(a.poses, b.poses)) for a, b in pairs]
    path = path_of(PLACES, TURNS)
    monkeypatch.setattr(TRAVEL, "max_log_sigma", 0.5)
    found = find_scale(works_of(results, path), path, DEPTH)
    assert isinstance(found, str)
    assert "contradict" in found


def test_a_camera_that_hardly_moves_gives_no_scale(walk):
    rng = np.random.default_rng(0)
    path = path_of(np.cumsum(rng.normal(0, 1e-4, (FRAMES, 3)), axis=0))
    assert isinstance(find_scale(works_of(results_of({1: walk}), path), path, DEPTH), str)


def test_no_people_give_no_scale():
    assert isinstance(find_scale({}, path_of(PLACES), DEPTH), str)


def test_files_contain_the_camera_position(walk, tmp_path):
    motion = CameraMotion(TRANSLATING, distance=2.0, distance_sigma=0.1)
    with PlacedRun(results_of({1: walk}, TURNS, PLACES), H36M17, CAMERA, Steps(path=path_of(PLACES, TURNS))) as run:
        info = RunInfo(
            source="walk", fps=30.0, camera=CAMERA, skeleton=H36M17, world=WorldInfo.of(run),
            motion=MotionInfo(motion, compensated=True),
        )  # fmt: skip
        views = [result.view.position for result in run]
        for writer in (NpzWriter(tmp_path / "poses.npz", info), JsonWriter(tmp_path / "poses.json", info)):
            with writer:
                for result in run:
                    writer.write(result)
                writer.close(True)
    table = load_poses(tmp_path / "poses.npz")
    np.testing.assert_allclose(table.camera_position, views, atol=1e-4)
    np.testing.assert_allclose(table.view(7).position, views[7], atol=1e-4)
    assert np.isnan(table.camera_position_sigma).all()  # the background measured it
    assert table.run.motion.motion.distance == 2.0
    # The documented formula, but for what raised people onto the floor.
    world = table.world_info.world
    camera = np.einsum("tij,tnj->tni", table.camera_rotation, table.joints3d + table.root[:, None])
    points = (camera + table.camera_position[:, None]) @ world.rotation.T - [0, world.floor, 0]
    assert np.abs(points[..., [0, 2]] - table.placed.joints[..., [0, 2]]).max() < 1e-3
    text = json.loads((tmp_path / "poses.json").read_text())
    np.testing.assert_allclose(text["frames"][9]["camera"]["position"], views[9], atol=1e-3)
    assert text["frames"][9]["camera"]["position_sigma"] is None


@pytest.fixture
def decided(monkeypatch):
    """Fixes what the background says."""

    def fix(kind, problem="", path=None, check_feet=True):
        decision = Decision(CameraMotion(kind, 1.0), None if problem else path, problem, check_feet, path)
        monkeypatch.setattr(placing, "decide", lambda log, camera, assumed_focal: decision)
        monkeypatch.setattr(MotionLog, "peopled", True)

    return fix


def placed(walk, camera, images=None):
    recorded = RunData(results_of({1: walk}, TURNS, PLACES), H36M17, CAMERA, images)
    run, decision = place_run(recorded, MotionLog(), camera, Steps())
    if run is not None:
        run.close()
    return run is not None, decision


MOVED = "the camera moved (--camera rotating ignores that)"


def test_without_the_extra_feet_give_the_path_and_the_remedy_is_named(walk, decided, monkeypatch):
    monkeypatch.setattr(carried, "has_colmap", lambda: False)
    decided(TRANSLATING, MOVED, path_of(turns=TURNS))
    there, decision = placed(walk, "auto")
    assert there
    assert "standing feet give its path" in decision.notices[0]
    assert "pip install 'pose-run[slam]'" in decision.notices[0]
    assert decision.motion.distance == pytest.approx(np.linalg.norm(PLACES[-1] - PLACES[0]), rel=0.2)


def test_camera_free_without_the_extra_compensates_rotation(walk, decided, monkeypatch):
    monkeypatch.setattr(carried, "has_colmap", lambda: False)
    decided(ROTATING, path=path_of(turns=TURNS), check_feet=False)
    there, decision = placed(walk, "free")
    assert there
    assert "pip install 'pose-run[slam]'" in decision.translation


def test_path_contradicted_by_feet_is_replaced_by_theirs(walk, decided, monkeypatch):
    wrong = path_of(3 * PLACES, TURNS)
    monkeypatch.setattr(carried, "_travel", lambda *_: (wrong, Scale(1.0, 0.05)))
    decided(TRANSLATING, MOVED, path_of(turns=TURNS))
    there, decision = placed(walk, "auto")
    assert there
    assert "standing feet contradict" in decision.notices[0]
    assert decision.motion.distance < 0.5 * np.linalg.norm(3 * PLACES[-1])


def test_path_supported_by_feet_gives_a_world(walk, decided, monkeypatch):
    right = path_of(PLACES, TURNS)
    monkeypatch.setattr(carried, "_travel", lambda *_: (right, Scale(1.0, 0.05)))
    decided(TRANSLATING, MOVED, path_of(turns=TURNS))
    there, decision = placed(walk, "auto")
    assert there
    length = np.linalg.norm(np.diff(PLACES, axis=0), axis=1).sum()
    assert decision.motion.distance == pytest.approx(length)
    assert decision.motion.distance_sigma == pytest.approx(0.05 * length)
