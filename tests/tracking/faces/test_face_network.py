"""The shipped network on a clip, and `pose-run --face` from a video to files."""

import cv2
import numpy as np
import pytest
from pose_apps.run import main

import pose
from pose.networks.faces import WEIGHT, FaceNetwork, tracked_regions
from pose.networks.weights import FetchError, locate
from pose.structures.face_points import head_angles
from pose.structures.types import Regions


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
