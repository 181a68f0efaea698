"""What several cameras found as results of frames: on one time line, in the file format, in other programs' formats."""

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
import scenes

from pose.errors import PoseError
from pose.export import export, open_selection
from pose.multiview.calibration_files import check_cameras, read_cameras, size_notes
from pose.multiview.motions import find_motions, scale_for_heights, stature_of
from pose.multiview.results import MultiviewResults
from pose.multiview.rig import rescaled
from pose.multiview.scene import CameraRun, Given, find_scene, results_of
from pose.results import JsonWriter, NpzWriter, load_poses
from pose.results.cameras import write_cameras
from pose.results.json import SCHEMA_PATH
from pose.structures.camera import Camera
from pose.view.grid import CameraGrid

NAMES = ["left", "right"]


def test_timeline_starts_with_the_earliest_camera(scene):
    views, _, rig, line, motions, results, _ = scene
    assert line.times[0] == 0
    assert rig.cameras[1].offset == pytest.approx(0, abs=0.01)
    assert rig.cameras[0].offset == pytest.approx(views[0].offset, abs=0.02)
    every = list(results)
    assert len(every) == len(line.times)
    assert len(motions[0].frames) == len(every)
    alone = [result for result in every if result.time < views[0].offset - 0.2]
    assert alone
    assert all((result.people.scores == 0).all() for result in alone)
    assert all((result.poses.seen_by[0] & 1 == 0).all() for result in alone)
    assert (every[-1].poses.seen_by[0] == 3).mean() > 0.8


def test_interpolated_frames_and_sigma_of_the_first_camera_are_kept(scene):
    _, _, rig, line, motions, results, info = scene
    own = [
        replace(
            seen,
            people=replace(
                seen.people, interpolated=np.full(len(seen.people), index % 2 == 1),
                keypoint_sigma=np.where(seen.people.scores > 0, index + 1, 0).astype(np.float32),
            ),
        )
        for index, seen in enumerate(results._own[0])
    ]  # fmt: skip
    every = [one.people for one in MultiviewResults(rig, motions, line, results._world, [own], info)]
    seen = [people for people in every if people.scores.any()]
    for people in seen:
        (index,) = np.unique(people.keypoint_sigma[people.scores > 0])
        assert people.interpolated[0] == (index % 2 == 0)
    assert {bool(people.interpolated[0]) for people in seen} == {False, True}
    assert not any(people.interpolated[0] for people in every if not people.scores.any())


def test_results_round_trip_npz_and_json(scene, tmp_path):
    *_, results, info = scene
    with JsonWriter(tmp_path / "poses.json", info) as one, NpzWriter(tmp_path / "poses.npz", info) as other:
        for result in results:
            one.write(result)
            other.write(result)
    document = json.loads((tmp_path / "poses.json").read_text())
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text()))
    assert [camera["name"] for camera in document["cameras"]] == NAMES
    table = load_poses(tmp_path / "poses.npz")
    assert table.run.cameras == info.cameras
    last = list(results)[-1]
    np.testing.assert_array_equal(table[len(table) - 1].poses.seen_by, last.poses.seen_by)
    assert document["frames"][-1]["people"][0]["seen_by"] == last.poses.seen_by[0].tolist()
    recording = open_selection(tmp_path / "poses.npz")
    written = list(export(recording, ["trc", "csv", "bvh", "coco"], tmp_path, "poses", recording.people))
    assert all(one.path.stat().st_size for one in written)


def test_a_given_height_scales_people_and_cameras_alike(scene):
    _, _, rig, line, motions, _, _ = scene
    factor = scale_for_heights(motions, {None: 1.9}).factor
    larger = rescaled(rig, factor)
    assert np.linalg.norm(larger.cameras[1].translation) == pytest.approx(
        factor * np.linalg.norm(rig.cameras[1].translation)
    )
    again = find_motions(larger, line)
    assert stature_of(again[0]) == pytest.approx(1.9, abs=0.03)


def test_cameras_json_is_read_back(scene, tmp_path):
    _, _, rig, _, _, _, info = scene
    path = tmp_path / "cameras.json"
    write_cameras(path, info.cameras)
    found = read_cameras(path, NAMES, [camera.size for camera in rig.cameras])
    for camera, given in zip(found, rig.cameras, strict=True):
        np.testing.assert_allclose(camera.rotation, given.rotation, atol=1e-6)
        np.testing.assert_allclose(camera.translation, given.translation, atol=1e-5)
        assert camera.focal == pytest.approx(given.focal, rel=1e-6)
        assert camera.known
    swapped = read_cameras(path, NAMES[::-1], [camera.size for camera in rig.cameras[::-1]])
    np.testing.assert_allclose(swapped[1].rotation, rig.cameras[1].rotation.T, atol=1e-6)


TOML = """
[cam_0]
name = "left"
size = [ 640.0, 480.0,]
matrix = [ [ 600.0, 0.0, 320.0,], [ 0.0, 600.0, 240.0,], [ 0.0, 0.0, 1.0,],]
distortions = [ 0.1, 0.0, 0.0, 0.0,]
rotation = [ 0.0, 0.0, 0.0,]
translation = [ 0.0, 0.0, 0.0,]
[cam_1]
name = "right"
size = [ 640.0, 480.0,]
matrix = [ [ 600.0, 0.0, 320.0,], [ 0.0, 600.0, 240.0,], [ 0.0, 0.0, 1.0,],]
distortions = [ 0.0, 0.0, 0.0, 0.0,]
rotation = [ 0.0, 1.5707963, 0.0,]
translation = [ 1.0, 0.0, 2.0,]
[metadata]
adjusted = true
"""


@pytest.mark.parametrize(
    "key", ["a." * 40_000 + "a", '"a b" . ' * 20_000 + "c", "'\\'." * 20_000 + "c", '"\\"".' * 20_000 + "c"]
)
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "a = {{ {} = 1 }}"])
def test_a_key_of_thousands_of_parts_is_refused_before_it_takes_memory(tmp_path, key, form):
    path = tmp_path / "bomb.toml"
    path.write_text(form.format(key))
    with pytest.raises(PoseError, match="a key with more than 8 parts"):
        check_cameras(path, NAMES)


def test_toml_calibrations_of_other_programs_are_read(tmp_path):
    (tmp_path / "calibration.toml").write_text(TOML)
    left, right = read_cameras(tmp_path / "calibration.toml", NAMES, [(640, 480), (1280, 960)])
    assert left.lens.coefficients == (0.1, 0.0)
    assert right.focal == pytest.approx(1200)  # the video is twice as large
    np.testing.assert_allclose(right.rotation, [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], atol=1e-6)
    np.testing.assert_allclose(right.translation, [1, 0, 2])


@pytest.mark.parametrize(
    ("made_for", "size", "ratio", "note"),
    [
        ((1088, 1920), (1080, 1920), 1.0, "cropped at the right"),
        ((1920, 1080), (1920, 1088), 1.0, "cropped at the right"),
        ((1280, 720), (854, 480), 854 / 1280, "scaled by 0.667"),
        ((1920, 1080), (1920, 1080), 1.0, ""),
    ],
)
def test_calibrations_for_other_image_sizes_are_cropped_or_scaled(tmp_path, made_for, size, ratio, note):
    camera = {"K": [[1000, 0, 500], [0, 1000, 400], [0, 0, 1]], "R": np.eye(3).tolist(), "size": made_for}
    document = {"cameras": [camera | {"name": name, "t": [x, 0, 0]} for x, name in enumerate(NAMES)]}
    (tmp_path / "cameras.json").write_text(json.dumps(document))
    for found in read_cameras(tmp_path / "cameras.json", NAMES, [size] * 2):
        assert found.focal == pytest.approx(1000 * ratio)
        np.testing.assert_allclose(found.centre, [500 * ratio, 400 * ratio])
        assert found.size == size
    notes = size_notes(tmp_path / "cameras.json", NAMES, [size] * 2)
    assert len(notes) == (2 if note else 0)
    assert all(note in one for one in notes)


@pytest.mark.parametrize(("made_for", "size"), [((1600, 1200), (1600, 900)), ((1088, 1920), (1072, 1920))])
def test_a_calibration_for_another_part_of_the_image_says_crop_or_scale(tmp_path, made_for, size):
    camera = {"K": [[1000, 0, 500], [0, 1000, 400], [0, 0, 1]], "R": np.eye(3).tolist(), "size": made_for}
    document = {"cameras": [camera | {"name": name, "t": [x, 0, 0]} for x, name in enumerate(NAMES)]}
    (tmp_path / "cameras.json").write_text(json.dumps(document))
    with pytest.raises(PoseError, match="crop or scale the video to that size"):
        read_cameras(tmp_path / "cameras.json", NAMES, [size] * 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a calibration"),
        ("[]", "not a calibration"),
        ("{}", "contains no camera"),
        ('{"cameras": [{"name": "left"}]}', "has 1 camera "),
        ('{"left": {"K": [[1]], "R": 1, "t": 2}, "right": {"K": [[NaN]]}}', "not a calibration"),
        (TOML, "not a calibration"),
    ],
)
def test_invalid_calibration_gives_a_one_line_error(tmp_path, text, message):
    path = tmp_path / "cameras.json"
    path.write_text(text)
    with pytest.raises(PoseError, match=message) as caught:
        read_cameras(path, NAMES, [(640, 480)] * 2)
    assert "\n" not in str(caught.value)


def test_overlay_grid_shows_every_camera_and_3d(scene):
    _, _, rig, _, _, results, _ = scene
    grid = CameraGrid(rig.cameras, NAMES, [iter(()), iter(())])
    drawn = [grid.draw(result) for result in list(results)[:2]]
    assert drawn[0].shape == (grid.size[1], grid.size[0], 3)
    assert drawn[0].std() > 1


@pytest.mark.parametrize(
    ("given", "sigma"),
    [
        ({}, 0.054),  # C. C. Gordon et al., ANSUR II, 2014
        ({"heights": {None: 1.7}}, 0.0),
        ({"distance": (0, 1, 4.0)}, 0.0),
        ({"cameras": True}, 0.0),
        ({"cameras": True, "refine": True}, 0.054),
    ],
)
def test_unscaled_rig_has_the_uncertainty_of_adult_heights(scene, monkeypatch, given, sigma):
    views, points, rig, _, _, results, info = scene
    monkeypatch.setattr("pose.multiview.fitting.find_rig", lambda *args: rig)
    monkeypatch.setattr("pose.multiview.scene.clock_hints", lambda *args: [])
    camera = Camera(rig.cameras[0].matrix, True, rig.cameras[0].size)
    tracks = [scenes.track(view, i, points) for i, view in enumerate(views)]
    runs = [CameraRun([track], (float(track.times[0]), float(track.times[-1])), 30.0, camera) for track in tracks]
    if "cameras" in given:
        given = {**given, "cameras": rig.cameras}
    found = find_scene(runs, NAMES, Given(**given))
    _, described = results_of(found, [results], info)
    ((height, uncertainty),) = described.world.heights.values()
    assert uncertainty == pytest.approx(sigma * height)
    if "heights" in given:
        assert height == pytest.approx(1.7, abs=1e-3)
