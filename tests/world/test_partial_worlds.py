"""A scene whose camera motion is unknown has no world; the other scenes keep theirs, in files and exports."""

import json
from contextlib import ExitStack
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from test_feet import CERTAIN, run_of
from test_scene_worlds import CAMERA, HIGH, LOW, clip, joints_of
from walker import standing

from pose.analysis import analyse
from pose.body.tracks import Selection
from pose.export.glb_camera import viewpoints
from pose.results import JsonWriter, MotionInfo, NpzWriter, RunInfo, WorldInfo, load_poses
from pose.results.checks import check_table
from pose.results.json import SCHEMA_PATH
from pose.structures.skeletons import H36M17
from pose.world.camera_motion.decision import Decision
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.verdict import ROTATING, STATIC, UNKNOWN, CameraMotion, SceneMotion, summarise
from pose.world.clean import Steps
from pose.world.footing import check_with_feet
from pose.world.run import PlacedRun

UNPLACED = ((3.0, 6.0),)  # s, the second of three scenes
FIRST, SECOND, THIRD = slice(0, 90), slice(90, 180), slice(180, 270)


@pytest.fixture(scope="module")
def results():
    return clip(LOW, HIGH, {**LOW, "pitch": -15})


@pytest.fixture(scope="module")
def run(results):
    with PlacedRun(results, H36M17, CAMERA, Steps(without_world=UNPLACED)) as run:
        yield run


def motion():
    kinds = (STATIC, UNKNOWN, STATIC)
    return summarise(
        [SceneMotion(n, 3.0 * n, 3.0 * n + 3, CameraMotion(kind, 1.0), 90, n != 1) for n, kind in enumerate(kinds)]
    )


@pytest.fixture(scope="module")
def written(run, tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("written")
    info = RunInfo(
        source="a.mp4", fps=30.0, camera=CAMERA, skeleton=H36M17, world=WorldInfo.of(run),
        motion=MotionInfo(motion(), compensated=True),
    )  # fmt: skip
    with ExitStack() as stack:
        writers = [
            stack.enter_context(writer(tmp_path / f"poses.{name}", info))
            for name, writer in (("npz", NpzWriter), ("json", JsonWriter))
        ]
        for result in run:
            for writer in writers:
                writer.write(result)
        for writer in writers:
            writer.close()
    return load_poses(tmp_path / "poses.npz"), json.loads((tmp_path / "poses.json").read_text("utf-8"))


def test_only_people_of_the_failing_scene_have_no_world(run, results):
    joints = joints_of(run)
    assert np.isnan(joints[SECOND]).all()
    assert run.unplaced == {2}
    assert set(run.heights) == {1, 3}
    with PlacedRun([*results[FIRST], *results[THIRD]], H36M17, CAMERA) as alone:
        np.testing.assert_allclose(np.concatenate([joints[FIRST], joints[THIRD]]), joints_of(alone), atol=1e-6)


def test_files_contain_partial_worlds(written):
    table, document = written
    check_table(table)
    document["frames"] = document["frames"][:120:20]
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text("utf-8")))
    people = [frame["people"][0] for frame in document["frames"]]
    assert people[5]["world"] == [[None] * 3] * 17
    assert None not in people[0]["world"][0]
    assert document["frames"][5]["camera"]["sigma_degrees"] is None
    assert [one["world"] for one in document["camera_motion"]["scenes"]] == [True, False, True]
    assert document["camera_motion"]["kind"] == STATIC
    assert table.run.motion.to_dict() == document["camera_motion"]


def test_exports_in_world_coordinates_leave_the_scene_out(written):
    table, _ = written
    world = Selection(table, "a")
    assert world.track(2, world.timeline) is None
    assert len(world.track(3, world.timeline)) == 90
    camera = Selection(table, "a", space="camera")
    assert len(camera.track(2, camera.timeline)) == 90
    (view,) = viewpoints(world, world.space)
    np.testing.assert_array_equal(view.times, world.times[np.r_[FIRST, THIRD]])


def test_analysis_omits_scenes_without_a_world(written):
    analysis = analyse(written[0], ["gait"])
    ((person, reason),) = [(row.person, row.reason) for row in analysis.omissions if row.group == "all"]
    assert (person, reason) == (2, "the camera's motion is unknown while the person is in view")
    assert {metric.person for metric in analysis.metrics} <= {1, 3}


def test_sliding_feet_end_the_world_of_their_scene_only():
    (good,), (bad,) = run_of(standing()), run_of(standing(), (0.4, 0, 0))
    end = float(good[-1, 0]) + 0.1
    later = bad + np.array([end, 0, 0, 0, 0, 0])
    times = np.linspace(0, 2 * end, 100)
    turns, ones, scenes = np.tile(np.eye(3), (100, 1, 1)), np.ones(100), (times >= end).astype(np.int64)
    path = CameraPath(times, turns, ones, 0.001 * ones, scenes)
    clip_motion = summarise(
        [SceneMotion(n, n * end, (n + 1) * end, replace(CERTAIN, pan=10.0 * (n + 1)), 50) for n in (0, 1)]
    )
    found = check_with_feet(Decision(clip_motion, path, check_feet=True, measured=path), [good, later])
    assert (found.problem, found.without_world) == ("", ((end, np.inf),))
    assert "standing feet slide with its rotation compensated" in found.notices[0]
    assert f"in scene 2 ({end:.1f} to {2 * end:.1f} s): no world is written there" in found.notices[0]
    assert (found.motion.kind, found.motion.pan) == (ROTATING, 10.0), "of the scene with a world"
    assert found.motion.drift < 0.05
    both = check_with_feet(Decision(clip_motion, path, check_feet=True, measured=path), [bad, later])
    assert both.path is None
    assert "scenes 1 (0.0" in both.problem
