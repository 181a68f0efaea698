"""Faces in results: in files, tables and drawings."""

import csv
from dataclasses import replace

import cv2
import numpy as np
import pytest
from pose_apps.run import main
from pose_fakes import run_info, seen_result

import pose
from pose.body.character.look import character_look
from pose.body.gaze import face_directions
from pose.errors import UsageError
from pose.export import open_selection
from pose.networks.faces import WEIGHT, FaceNetwork, tracked_regions
from pose.networks.weights import FetchError, locate
from pose.results import NpzWriter, load_poses
from pose.structures.face_points import MEASURES, POINTS, Faces, head_angles, head_turns, measures
from pose.structures.result_store import ResultStore
from pose.structures.skeletons import H36M17
from pose.structures.types import Regions
from pose.view.overlay import Overlay


def points_of(rng) -> np.ndarray:
    return (rng.random((POINTS, 3)) * (60, 80, 30) + (300, 60, -15)).astype(np.float32)


@pytest.fixture
def frames(rng):
    """Six frames of a person whose face is not seen in the first two."""
    results = []
    for index in range(6):
        result = seen_result([(0, 0, 4)], index=index, time=index / 25)
        faces = Faces.unknown(1)
        if index >= 2:
            faces.points[0], faces.scores[0] = points_of(rng), 0.9
        results.append(replace(result, people=replace(result.people, faces=faces)))
    return results


@pytest.fixture
def path(tmp_path, frames):
    info = run_info(H36M17)
    with NpzWriter(tmp_path / "poses.npz", replace(info, settings={**info.settings, "face": True})) as writer:
        for frame in frames:
            writer.write(frame)
    return tmp_path / "poses.npz"


def test_npz_contains_face_points_angles_and_measures(path, frames):
    with np.load(path) as arrays:
        assert arrays["face_keypoints"].shape == (6, POINTS, 3)
        assert np.isnan(arrays["face_angles"][:2]).all()
        np.testing.assert_allclose(arrays["face_angles"][3], head_angles(frames[3].people.faces.points[0]), rtol=1e-5)
        np.testing.assert_allclose(arrays["face_measures"][3], measures(frames[3].people.faces.points[0]), rtol=1e-5)
    points = pose.load(path).faces()
    assert points.shape == (1, 6, POINTS, 3)
    assert np.isfinite(points).all(axis=(0, 2, 3)).tolist() == [False] * 2 + [True] * 4
    table = load_poses(path)
    assert table[0].people.faces.detected.tolist() == [False]
    np.testing.assert_array_equal(table[4].people.faces.points, frames[4].people.faces.points)


def test_file_without_faces_has_none(tmp_path, frames):
    with NpzWriter(tmp_path / "poses.npz", run_info(H36M17)) as writer:
        writer.write(frames[3])
    table = load_poses(tmp_path / "poses.npz")
    assert table.face_keypoints is None
    with pytest.raises(UsageError, match="pose-run --face"):
        pose.load(tmp_path / "poses.npz").faces()
    assert table[0].people.faces is None
    pose.convert(tmp_path / "poses.npz", ["faces"], tmp_path / "out")
    assert len((tmp_path / "out" / "poses-faces.csv").read_text().splitlines()) == 1


def test_csv_has_a_row_for_each_face_that_is_seen(path, tmp_path, frames):
    pose.convert(path, ["faces"], tmp_path / "out")
    with (tmp_path / "out" / "poses-faces.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["frame"]) for row in rows] == [2, 3, 4, 5]
    wanted = measures(frames[3].people.faces.points[0])
    assert [float(rows[1][name]) for name in MEASURES] == pytest.approx(wanted, abs=6e-4)
    assert float(rows[1]["yaw_deg"]) == pytest.approx(head_angles(frames[3].people.faces.points[0])[0], abs=6e-4)


def test_character_head_follows_the_face(path):
    recording = open_selection(path, space="camera")
    track = recording.track(1, recording.timeline)
    ways = face_directions(track, np.arange(6), track.space)
    assert np.isnan(ways[:2]).all()
    np.testing.assert_allclose(np.linalg.norm(ways[2:], axis=1), 1, atol=1e-6)
    ((_, motion),) = character_look("plain")(track).spans()
    assert np.isfinite(motion.quaternions).all()


def test_a_face_in_the_middle_of_the_image_points_to_the_camera(tmp_path, frames):
    frame = frames[3]
    info = run_info(H36M17)
    points = frame.people.faces.points[0]
    turned = ((points - points.mean(axis=0)) * (1, -1, -1)) @ head_turns(points) * (1, -1, -1)  # looks straight ahead
    turned[:, :2] += info.camera.matrix[:2, 2]
    faces = Faces(turned[None].astype(np.float32), np.ones(1, np.float32))
    said = replace(info, settings={**info.settings, "face": True})
    with NpzWriter(tmp_path / "poses.npz", said) as writer:
        writer.write(replace(frame, people=replace(frame.people, faces=faces)))
    recording = open_selection(tmp_path / "poses.npz", space="camera")
    ways = face_directions(recording.track(1, recording.timeline), np.arange(1), recording.space)
    np.testing.assert_allclose(ways, [(0, 0, 1)], atol=2e-3)


def test_stored_results_round_trip_faces(frames):
    store = ResultStore(None, H36M17)
    store.write(frames[5])
    store.write(replace(frames[5], people=replace(frames[5].people, faces=None)))
    np.testing.assert_array_equal(store[0].people.faces.points, frames[5].people.faces.points)
    assert store[1].people.faces is None


def test_overlay_draws_the_face_and_its_legend(frames):
    seen, plain = frames[3], replace(frames[3], people=replace(frames[3].people, faces=None))
    blank = np.full((480, 640, 3), 128, np.uint8)
    drawn = [Overlay((640, 480), H36M17, inset="off").draw(blank, one) for one in (plain, seen)]
    changed = np.argwhere((drawn[0] != drawn[1]).any(axis=2))[:, ::-1]
    assert len(changed) > 100
    assert (changed.min(axis=0) >= (290, 50)).all()
    assert (changed.max(axis=0) <= (370, 150)).all()
    inside = np.zeros(blank.shape[:2], bool)
    for area in Overlay((640, 480), H36M17, inset="off").changes(seen):
        area.of(inside)[:] = True
    assert inside[changed[:, 1], changed[:, 0]].all()


def test_faces_must_match_the_number_of_people(frames):
    with pytest.raises(ValueError, match=r"People\.faces"):
        replace(frames[0].people, faces=Faces.unknown(2))


@pytest.fixture(scope="module")
def network():
    try:
        return FaceNetwork(model=locate(WEIGHT))
    except FetchError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def image(videos):
    capture = cv2.VideoCapture(str(videos / "squats.mp4"))
    frame = capture.read()[1]
    capture.release()
    return np.ascontiguousarray(frame[:, :, ::-1])


@pytest.fixture(scope="module")
def place(image, network):
    """The face's region in the image, from a rough one."""
    rough = Regions(np.array([[356, 236]], np.float32), np.full((1, 2), 110, np.float32), np.zeros(1, np.float32))
    return tracked_regions(network.estimate(image, rough).points)


def test_a_mirrored_face_has_mirrored_angles(network, image, place):
    mirrored = np.ascontiguousarray(image[:, ::-1])
    centers = (place.centers * (-1, 1) + (image.shape[1] - 1, 0)).astype(np.float32)
    one = network.estimate(image, place)
    two = network.estimate(mirrored, Regions(centers, place.sizes, -place.angles))
    assert one.presence[0] > 0.9
    assert two.presence[0] > 0.9
    angles, back = head_angles(one.points[0]), head_angles(two.points[0]) * (-1, 1, -1)
    assert angles[0] > 15  # the person looks to the image's right, their own left
    np.testing.assert_allclose(back, angles, atol=8)


def test_wall_gives_no_face(network, image, place):
    wall = np.full_like(image, 120)
    assert network.estimate(wall, place).presence[0] < 0.1


@pytest.mark.slow
def test_run_writes_faces_and_the_cache_restores_them(videos, at_hand, network, tmp_path):
    cached = ["--face", "--cache", str(tmp_path / "cache"), "--formats", "npz,faces", "--end", "0.5", "--quiet"]
    for out in ("first", "second"):
        assert main([str(videos / "squats.mp4"), "--out", str(tmp_path / out), *cached]) == 0
    one, other = (pose.load(tmp_path / out / "poses.npz").table for out in ("first", "second"))
    assert (one.face_scores > 0.9).all()
    np.testing.assert_array_equal(one.face_keypoints, other.face_keypoints)
    assert [model.name for model in one.run.models if model.role == "face"] == [WEIGHT]
    assert len((tmp_path / "first" / "poses-faces.csv").read_text().splitlines()) == 1 + len(one.face_scores)
