"""Lens models: compared with OpenCV, inverted, differentiated, and read from calibration files."""

import json

import cv2
import numpy as np
import pytest

from pose.errors import PoseError
from pose.multiview.calibration_files import camera_json, read_cameras
from pose.multiview.residuals import projected
from pose.multiview.rig import Accuracy
from pose.multiview.types import CameraBatch, ViewCamera
from pose.results.cameras import result_cameras
from pose.structures.lenses import LENSES, FisheyeLens, RadialLens, lens_of_file

FISHEYE, RADIAL = FisheyeLens((-0.02, 0.006, -0.003, 0.0005)), RadialLens((-0.12, 0.03))
FOCAL, CENTRE = 400.0, np.array([319.5, 239.5])
MATRIX = np.array([[FOCAL, 0, CENTRE[0]], [0, FOCAL, CENTRE[1]], [0, 0, 1]])


def camera(lens) -> ViewCamera:
    turned, _ = cv2.Rodrigues(np.array([0.1, -0.3, 0.05]))
    return ViewCamera((640, 480), FOCAL, CENTRE, turned, np.array([0.2, -0.1, 0.4]), lens, known=True)


@pytest.fixture
def points(rng):
    return np.concatenate([rng.uniform(-2, 2, (50, 2)), rng.uniform(1, 4, (50, 1))], axis=1)


def test_a_fisheye_camera_projects_as_opencv_does(points):
    one = camera(FISHEYE)
    turn, _ = cv2.Rodrigues(one.rotation)
    expected, _ = cv2.fisheye.projectPoints(
        points[:, None], turn, one.translation, MATRIX, np.array(FISHEYE.coefficients)
    )
    np.testing.assert_allclose(one.project(points), expected[:, 0], atol=1e-6)


def test_a_camera_with_radial_distortion_projects_as_opencv_does(points):
    one = camera(RADIAL)
    turn, _ = cv2.Rodrigues(one.rotation)
    expected, _ = cv2.projectPoints(points, turn, one.translation, MATRIX, np.array(RADIAL.in_file))
    np.testing.assert_allclose(one.project(points), expected[:, 0], atol=1e-6)


@pytest.mark.parametrize(("lens", "atol"), [(FISHEYE, 1e-9), (RADIAL, 1e-3)])
def test_unproject_inverts_project(lens, atol, rng):
    one = camera(lens)
    rays = rng.uniform(-0.6, 0.6, (40, 2))
    seen = one.to_world(np.concatenate([rays, np.ones((40, 1))], axis=1) * 3)
    np.testing.assert_allclose(one.unproject(one.project(seen)), rays, atol=atol)


@pytest.mark.parametrize("lens", [FISHEYE, RADIAL])
def test_derivatives_of_projections_are_those_of_differences(lens, points):
    one, batch, step = camera(lens), CameraBatch.of([camera(lens)]), 1e-6
    pixels, by_point = batch.projected(points)
    np.testing.assert_allclose(pixels[0], one.project(points), atol=1e-9)
    _, by_seen, _ = projected(one, points[:, None])
    for axis in range(3):
        moved = points + step * np.eye(3)[axis]
        difference = (one.project(moved) - one.project(points)) / step
        np.testing.assert_allclose(by_point[0, ..., axis].T, difference, rtol=1e-3, atol=1e-2)
        np.testing.assert_allclose((by_seen[:, 0] @ one.rotation)[..., axis], difference, rtol=1e-3, atol=1e-2)


def test_a_point_on_the_axis_is_not_distorted():
    for lens in (FISHEYE, RADIAL):
        np.testing.assert_allclose(lens.undistort(np.zeros((1, 2))), 0)
        assert lens.factor(np.zeros(1))[0] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("said", [{"fisheye": True}, {"lens": "fisheye"}])
def test_fisheye_cameras_are_read_from_a_calibration_and_written_to_results(tmp_path, said):
    values = {
        "size": [640, 480], "matrix": MATRIX.tolist(), "distortions": list(FISHEYE.coefficients),
        "rotation": [0.0, 0.0, 0.0], "translation": [0.0, 0.0, 0.0], **said,
    }  # fmt: skip
    document = {"a": values | {"name": "a"}, "b": values | {"name": "b", "rotation": [0.0, 1.5, 0.0]}}
    path = tmp_path / "cameras.json"
    path.write_text(json.dumps(document))
    cameras = read_cameras(path, ["a", "b"], [(640, 480)] * 2)
    assert [one.lens for one in cameras] == [FISHEYE, FISHEYE]
    written = [camera_json(name, one, Accuracy(0, 0, 0, 0, 0, 0, 1.0)) for name, one in zip("ab", cameras, strict=True)]
    point = np.array([[0.3, -0.2, 2.0]])

    class Run:
        cameras = written

    for shown, one in zip(result_cameras(Run), cameras, strict=True):
        np.testing.assert_allclose(shown.project(point), one.project(point), atol=1e-3)


@pytest.mark.parametrize(
    ("name", "coefficients", "said"),
    [
        ("radial", (0.1, 0.0, 0.2, 0.0), "tangential distortion is not supported"),
        ("fisheye", (0.0, 0.0, 0.0, 0.0, 0.1), "a fisheye lens has 4 distortion coefficients"),
        ("mirror", (), "unknown lens model 'mirror'; known: radial, fisheye"),
    ],
)
def test_lenses_that_cannot_be_represented_are_refused(name, coefficients, said):
    with pytest.raises(ValueError, match=said):
        lens_of_file(name, coefficients)


def test_an_unknown_lens_of_a_calibration_is_one_line(tmp_path):
    values = {"size": [640, 480], "matrix": MATRIX.tolist(), "rotation": [0, 0, 0], "translation": [0, 0, 0]}
    path = tmp_path / "cameras.json"
    path.write_text(json.dumps({"a": values | {"lens": "mirror"}, "b": values}))
    with pytest.raises(PoseError, match="unknown lens model 'mirror'"):
        read_cameras(path, ["a", "b"], [(640, 480)] * 2)
    assert set(LENSES) == {"radial", "fisheye"}
