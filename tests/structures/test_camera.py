"""A camera with a lens: project, unproject and undistort agree, and the whole run of a single camera uses them."""

import json

import cv2
import numpy as np
import pytest
from pose_apps.run import main
from pose_apps.support.intrinsics import read_intrinsics
from pose_fakes import run_info

from pose.config import PipelineConfig
from pose.errors import UsageError
from pose.lifting.straight import StraightLifter
from pose.pipeline import Pipeline
from pose.results import load_poses
from pose.results.run_info import RunInfo
from pose.structures.camera import Camera
from pose.structures.lenses import FisheyeLens, RadialLens
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.video import open_source

MATRIX = np.array([[400.0, 0, 319.5], [0, 405.0, 239.5], [0, 0, 1]])
LENSES = [FisheyeLens((-0.02, 0.006, -0.003, 0.0005)), RadialLens((-0.12, 0.03))]


@pytest.fixture(params=LENSES, ids=lambda lens: lens.name)
def camera(request) -> Camera:
    return Camera(MATRIX, True, (640, 480), request.param)


@pytest.fixture
def points(rng):
    return np.concatenate([rng.uniform(-1.5, 1.5, (50, 2)), rng.uniform(2, 4, (50, 1))], axis=1)


def test_undistorted_pixels_are_those_of_the_camera_without_a_lens(camera, points):
    pixels = camera.project(points)
    np.testing.assert_allclose(camera.undistort(pixels), camera.straight.project(points), atol=0.05)
    np.testing.assert_allclose(camera.unproject(pixels), points[:, :2] / points[:, 2:], atol=1e-4)
    assert np.linalg.norm(pixels - camera.straight.project(points), axis=1).max() > 5


def test_undistort_equals_opencv(points):
    camera = Camera(MATRIX, True, (640, 480), LENSES[0])
    pixels = camera.project(points)
    expected = cv2.fisheye.undistortPoints(pixels[:, None], MATRIX, np.array(LENSES[0].coefficients), P=MATRIX)
    np.testing.assert_allclose(camera.undistort(pixels), expected[:, 0], atol=1e-4)


def test_undistort_keeps_type_and_unknown_pixels(camera):
    pixels = np.array([[np.nan, 1], [100, 100]], np.float32)
    straight = camera.undistort(pixels)
    assert straight.dtype == np.float32
    assert np.isnan(straight[0, 0])
    assert np.abs(straight[1] - 100).max() > 1
    assert camera.straight.undistort(pixels) is pixels


def test_resized_camera_projects_to_the_same_place(camera, points):
    np.testing.assert_allclose(camera.resized((320, 240)).project(points), camera.project(points) / 2)
    with pytest.raises(UsageError, match="are for images of 640 x 480 px, got 640 x 360"):
        camera.resized((640, 360))


class Copied:
    """A lifter stage that notes the keypoints and returns each frame with the next one."""

    refines = False

    def __init__(self) -> None:
        self.keypoints, self.waiting = [], []

    def push(self, people):
        self.keypoints.append(people.keypoints)
        self.waiting.append(FrameResult(people, Poses3D.unknown(len(people))))
        return [self.waiting.pop(0)] if len(self.waiting) > 1 else []

    def flush(self):
        return self.waiting

    def take_refined(self):
        return []


def test_lifter_sees_straight_keypoints_and_results_have_those_of_the_image(camera, rng):
    stage, frames = Copied(), []
    lifter = StraightLifter(stage, camera)
    for index in range(3):
        keypoints = rng.uniform(50, 400, (1, 17, 2)).astype(np.float32)
        box = np.zeros((1, 4), np.float32), np.ones(1, np.float32)
        frames.append(People(index, index / 30, np.array([1]), *box, keypoints, np.ones((1, 17), np.float32)))
    results = [result for people in frames for result in lifter.push(people)] + lifter.flush()
    assert [result.people for result in results] == frames
    for people, seen in zip(frames, stage.keypoints, strict=True):
        np.testing.assert_array_equal(seen, camera.undistort(people.keypoints))


def test_calibration_file_sets_the_lens(camera, tmp_path):
    path = tmp_path / "lens.json"
    values = {"size": [1280, 960], "K": (MATRIX * [[2], [2], [1]]).tolist(), "lens": camera.lens.name}
    values["distortion"] = list(camera.lens.in_file)
    path.write_text(json.dumps(values))
    read = Camera.of((640, 480), read_intrinsics(str(path)))
    np.testing.assert_allclose(read.matrix, MATRIX)
    assert (read.lens, read.known, read.size) == (camera.lens, True, (640, 480))
    del values["size"]
    path.write_text(json.dumps(values))
    with pytest.raises(UsageError, match="'size' is missing"):
        read_intrinsics(str(path))


def test_metadata_of_a_run_keep_the_lens(camera):
    from dataclasses import replace

    info = replace(run_info(H36M17), camera=camera)
    again = RunInfo.from_json(json.loads(json.dumps(info.to_dict())))
    assert again.camera.lens == camera.lens
    assert "lens" not in run_info(H36M17).to_dict()["camera"]
    head = info.to_dict()
    head["camera"]["distortion"] = [1e20]
    with pytest.raises(ValueError, match="distortion: expected coefficients"):
        RunInfo.from_json(head)


@pytest.mark.usefixtures("at_hand")
@pytest.mark.parametrize("camera", LENSES[:1], indirect=True, ids=lambda lens: lens.name)
def test_run_of_a_single_camera_with_a_lens(camera, videos, tmp_path, tiny_lifter):
    """The 2D is that of the image, and the 3D projects onto it through the lens only."""
    path, size = tmp_path / "lens.json", open_source(str(videos / "dance.mp4")).info.size
    matrix = Camera.of(size).matrix
    values = {"size": list(size), "K": matrix.tolist(), "lens": camera.lens.name}
    path.write_text(json.dumps(values | {"distortion": list(camera.lens.in_file)}))
    call = [str(videos / "dance.mp4"), "--end", "0.1", "--lifter", str(tiny_lifter), "--formats", "npz", "--quiet"]
    assert main([*call, "--out", str(tmp_path / "plain"), "--no-overlay"]) == 0
    assert main([*call, "--out", str(tmp_path / "lens"), "--no-overlay", "--intrinsics", str(path)]) == 0
    plain, bent = load_poses(tmp_path / "plain"), load_poses(tmp_path / "lens")
    np.testing.assert_array_equal(bent.keypoints, plain.keypoints)
    assert bent.camera.lens == camera.lens
    assert not np.allclose(bent.root, plain.root, atol=1e-3)


def test_live_pipeline_takes_a_camera_with_a_lens(camera, at_hand):
    pipeline = Pipeline(PipelineConfig(), intrinsics=camera, live=True)
    assert pipeline.camera((320, 240)).lens == camera.lens
    with pytest.raises(UsageError, match="are for images of 640 x 480 px"):
        pipeline.camera((300, 300))
