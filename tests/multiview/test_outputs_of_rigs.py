"""Reports, exports and the Python API with results of several cameras, the first of which begins last."""

import csv
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from pose.analysis import analyse
from pose.analysis.report import write_report
from pose.errors import PoseError
from pose.export import export, open_selection
from pose.export.result import Result, load
from pose.export.table import observer_names
from pose.results import NpzWriter, Recording, load_poses
from pose.results.cameras import result_cameras, result_title
from pose.view.camera_plan import CameraMark, GroundPath, top_view
from pose.view.open3d_scene import labels
from pose.view.scene import SceneData, camera_lines


@pytest.fixture(scope="module")
def poses(scene, tmp_path_factory):
    *_, results, info = scene
    path = tmp_path_factory.mktemp("several") / "poses.npz"
    with NpzWriter(path, info) as writer:
        for result in results:
            writer.write(result)
    return path


def test_file_cameras_equal_the_rig(scene, poses):
    _, _, rig, _, motions, _, _ = scene
    cameras = load(poses).cameras
    for found, camera, accuracy in zip(cameras, rig.cameras, rig.accuracy, strict=True):
        np.testing.assert_allclose(found.place, camera.position, atol=1e-5)
        joints = motions[0].joints[3].astype(np.float64)
        np.testing.assert_allclose(found.project(joints), camera.project(joints), atol=0.05)
        assert found.own_time(2.0) == pytest.approx(float(camera.own_time(np.array([2.0]))[0]), abs=1e-5)
        assert found.result_time(found.own_time(1.5)) == pytest.approx(1.5)
        assert found.place_sigma == pytest.approx(accuracy.position, abs=1e-6)
    counts = load(poses).seen_by
    assert set(np.unique(counts)) <= {0.0, 1.0, 2.0}
    assert counts[0, -1].mean() > 1.5


def test_the_report_shows_cameras_from_above(scene, poses, tmp_path):
    table = load_poses(poses)
    write_report(analyse(table), table, tmp_path / "analysis.html", result_title(table.run, table.run.source))
    page = (tmp_path / "analysis.html").read_text(encoding="utf-8")
    drawing = ElementTree.fromstring(re.search(r"<svg.*?</svg>", page)[0])
    assert len(drawing.findall("rect")) == 2
    assert {"left", "right", "person 1", "1 m"} <= {text.text for text in drawing.findall("text")}
    assert "<h1>Movement analysis: left.mp4, right.mp4</h1>" in page
    assert "x to the right, z towards left" in page
    written = list(export(open_selection(poses), ["html", "coco"], tmp_path, "poses"))
    assert '<section class="cameras">' in written[0].path.read_text(encoding="utf-8")
    assert any("of the first camera, left" in note for note in written[1].notes)


def test_tables_name_the_cameras_that_observed_each_joint(scene, poses, tmp_path):
    views, *_ = scene
    table, names = load_poses(poses), observer_names()
    (written,) = export(open_selection(poses), ["csv"], tmp_path, "poses")
    with written.path.open(encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    said = np.array([cell["observers"] for cell in cells]).reshape(-1, 17)
    assert (said == np.array(names)[table.seen_by]).all()
    alone = table.time < views[0].offset - 0.2
    assert set(np.unique(said[alone])) <= {"", "2"}, "the first camera has not begun"
    assert (said == "1+2").mean() > 0.3
    frame = load(poses).to_dataframe()
    assert (frame["observers"].to_numpy().reshape(-1, 17) == said).all()


@pytest.mark.parametrize("fps", [30.0, 47.0])
def test_between_two_frames_a_joint_is_observed_by_the_cameras_of_both(poses, fps):
    recording = open_selection(poses, fps=fps)
    track = recording.track(1, recording.timeline)
    at = np.arange(len(track))
    observers = track.observers(at)
    np.testing.assert_array_equal(observers > 0, track.read(at).score > 0)
    assert (observers == 3).any()


def test_scene_shows_cameras_at_their_positions(scene, poses):
    views, *_ = scene
    table = load_poses(poses)
    stage = SceneData(table)
    assert [camera.name for camera in stage.cameras] == ["left", "right"]
    for camera, view in zip(stage.cameras, views, strict=True):
        # World y up and stage z up; the true camera is as high above the true floor.
        assert camera.centre[2] == pytest.approx(-(view.rotation.T @ view.translation)[1], abs=0.25)
        _, placed = stage.people(len(stage) // 2)
        towards = placed[0, 0] - camera.centre
        looks = camera.corners.mean(axis=0) - camera.centre
        assert looks @ towards > 0.9 * np.linalg.norm(looks) * np.linalg.norm(towards)
        assert np.linalg.norm(camera.centre[:2] - stage.middle[:2]) <= stage.radius
        upper, lower = camera.corners[:2, 2].mean(), camera.corners[2:, 2].mean()
        assert upper > lower
    apart = np.linalg.norm(stage.cameras[0].centre - stage.cameras[1].centre)
    assert apart == pytest.approx(np.linalg.norm(result_cameras(table.run)[1].place), rel=1e-5)
    points, pairs = camera_lines(stage.cameras)
    assert points.shape == (10, 3)
    assert sorted(set(pairs.ravel().tolist())) == list(range(10))
    assert [label.words for label in labels(stage, len(stage) // 2)] == ["1", "left", "right"]
    one = replace(table, run=replace(table.run, cameras=()))
    assert SceneData(one).cameras == []


def test_result_in_memory_keeps_world_and_observers(scene):
    *_, results, info = scene
    result, last = Result(Recording.of(results, info), info.source), list(results)[-1]
    assert result.has_world
    np.testing.assert_array_equal(result.table[len(result.table) - 1].poses.seen_by, last.poses.seen_by)
    np.testing.assert_array_equal(result.table[len(result.table) - 1].placed.joints, last.placed.joints)


@pytest.mark.parametrize(
    "change",
    [
        {"R": [[1, 2], [3, 4]]}, {"R": [[1, 0, 0], [0, 1, 0], [0, 0, 2]]}, {"K": [[0, 0, 0]] * 3}, {"t": "left"},
        {"t": [1e300, 0, 0]}, {"size": [0, 480]}, {"size": [640]}, {"drift": -1.0}, {"sigma": None}, {"name": 3},
        {"offset": float("nan")}, {"distortion": ["k1"]}, {"residual_px": "small"},
    ],
)  # fmt: skip
def test_invalid_camera_is_rejected(scene, change):
    info = scene[-1]
    broken = replace(info, cameras=(info.cameras[0], dict(info.cameras[1]) | change))
    with pytest.raises(PoseError, match="cameras of the result: not a calibration") as caught:
        result_cameras(broken)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("count", [0, 1, 8])
def test_top_view_shows_all_content(count):
    rng = np.random.default_rng(count)
    names = ["<camera> & a name that is longer than its place"] * count
    marks = [CameraMark(name, 1000.0 * rng.standard_normal(3), np.array([0.0, -1.0, 0.0]), 0.5, 1e6) for name in names]
    paths = [
        GroundPath("nobody", np.full((5, 3), np.nan), (0, 0, 0)),
        GroundPath("person 1", np.array([[0.0, 1, 0], [np.nan, 1, 0], [1.0, 1, 1]]), (1, 2, 3), dashed=True),
    ]
    drawing = ElementTree.fromstring(top_view(paths, marks))
    assert len(drawing.findall("rect")) == count
    numbers = re.findall(r"-?\d+\.\d+", ElementTree.tostring(drawing, encoding="unicode"))
    assert all(np.isfinite(float(number)) for number in numbers)
    assert "nobody" not in {text.text for text in drawing.findall("text")}
