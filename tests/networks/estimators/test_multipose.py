"""MoveNet: its crops and its MultiPose output in pixels of the image."""

from pathlib import Path

import numpy as np
import pytest
from pose_detectors.movenet_multipose import MoveNetMultiPoseDetector

from pose.errors import UsageError
from pose.networks.estimators.movenet import MoveNet
from pose.networks.estimators.whole_image import MoveNetMultiPose, WholeImageEstimator
from pose.networks.multipose import MultiPoseNetwork, people
from pose.networks.options import StageOptions
from pose.networks.whole_image import ImageDetections
from pose.structures.skeletons import COCO17
from pose.structures.types import Boxes

IMAGE = np.zeros((100, 200, 3), np.uint8)


def row(score, x=0.5, y=0.25):
    joints = np.tile([y, x, 0.75], 17)
    return np.array([*joints, y - 0.1, x - 0.2, y + 0.1, x + 0.2, score], np.float32)


def test_rows_are_joints_then_box_then_score_with_y_first():
    rows = np.stack([row(0.3), row(0.1), row(0.9, x=0.25), row(0), row(0), row(0)])
    found = people(rows, np.array([200, 200], np.float32), 0.25, IMAGE)
    np.testing.assert_allclose(found.scores, [0.9, 0.3])
    np.testing.assert_allclose(found.keypoints[:, 0], [[50, 50], [100, 50]])
    np.testing.assert_allclose(found.keypoint_scores, 0.75)
    np.testing.assert_allclose(found.xyxy, [[10, 30, 90, 70], [60, 30, 140, 70]], atol=1e-4)


def test_joints_in_the_padding_have_score_0():
    found = people(row(0.9, y=0.6)[None], np.array([200, 200], np.float32), 0.25, IMAGE)
    assert not found.keypoint_scores.any()
    assert found.xyxy.max(axis=0).tolist()[3] == 100


def test_the_size_is_a_multiple_of_32(tmp_path):
    for size in (100, 16):
        with pytest.raises(UsageError, match=f"image size: {size} is not a positive multiple of 32 px"):
            MultiPoseNetwork(tmp_path, tmp_path, StageOptions(size=size))


class Centred:
    """Finds a person of half the image's width at its centre, and a worse one in the corner."""

    joints, side, device = 17, 64, "cpu"

    def __call__(self, images):
        found = []
        for image in images:
            width, height = image.shape[1], image.shape[0]
            boxes = np.array([[width / 4, height / 4, width * 3 / 4, height * 3 / 4], [0, 0, 4, 4]], np.float32)
            joints = np.repeat(boxes.reshape(2, 2, 2).mean(axis=1)[:, None], 17, axis=1)
            scores = np.array([0.8, 0.7], np.float32)
            found.append(ImageDetections(boxes, scores, joints, np.full((2, 17), 0.5, np.float32)))
        return found


def test_a_crop_gives_its_middle_person_in_pixels_of_the_image():
    estimator = WholeImageEstimator(Centred())
    assert estimator.skeleton is COCO17
    regions = estimator.regions(Boxes(np.array([[20, 20, 60, 60]], np.float32), np.ones(1, np.float32)))
    found = estimator.estimate([IMAGE], [regions])[0]
    np.testing.assert_allclose(found.xy[0], np.full((17, 2), 40), atol=0.5)
    np.testing.assert_allclose(found.presence, [0.8])
    boxes, whole = estimator.find([IMAGE])[0]
    np.testing.assert_allclose(boxes.xyxy[0], [50, 25, 150, 75])
    np.testing.assert_allclose(whole.xy[0, 0], [100, 50])


@pytest.fixture
def opened(monkeypatch):
    """The files of each network that is opened in place of MoveNet's; the catalogue has NAME at cache/NAME."""
    files = []
    module = "pose.networks.estimators.whole_image"
    monkeypatch.setattr(f"{module}.locate", lambda name: Path("cache") / name)
    monkeypatch.setattr(f"{module}.MultiPoseNetwork", lambda *given: files.append(given[:2]) or Centred())
    return files


def test_detector_and_estimator_open_their_weights_and_give_the_same_boxes(opened):
    graph = Path("cache/movenet-multipose-graph")
    estimator, detector = MoveNetMultiPose(model=Path("a.bin")), MoveNetMultiPoseDetector(model=Path("b.bin"))
    assert opened == [(graph, Path("a.bin")), (graph, Path("b.bin"))]
    (boxes,) = detector.detect([IMAGE])
    np.testing.assert_array_equal(boxes.xyxy, estimator.find([IMAGE])[0][0].xyxy)
    assert boxes.scores.tolist() == sorted(boxes.scores.tolist(), reverse=True)
    assert len(boxes) == 2


# xyxy px around the dancer of the first frames, read off the image by eye.
DANCER = np.array([[135, 62, 250, 440]], np.float32)


@pytest.fixture(scope="module", params=["movenet-lightning-int8.tflite", "movenet-thunder.bin"])
def movenet(request, weights_dir):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
        return MoveNet(model=weights_dir / request.param, options=StageOptions(threads=1))


@pytest.fixture(scope="module")
def around(movenet):
    return movenet.regions(Boxes(DANCER, np.ones(1, np.float32)))


def joint(keypoints, name):
    return keypoints.xy[0, COCO17.index(name)]


def test_joints_lie_on_the_body(movenet, around, dance):
    keypoints = movenet.estimate([dance[0]], [around])[0]
    assert keypoints.presence[0] > 0.6
    assert (keypoints.scores[0] > 0.2).sum() >= 14
    inside = (keypoints.xy[0] > DANCER[0, :2] - 10) & (keypoints.xy[0] < DANCER[0, 2:] + 10)
    assert inside.all()
    heights = [joint(keypoints, name)[1] for name in ("nose", "left_shoulder", "left_hip", "left_knee", "left_ankle")]
    assert (np.diff(heights) > 30).all()
    assert joint(keypoints, "left_shoulder")[0] > joint(keypoints, "right_shoulder")[0]  # the dancer faces the camera


def test_joints_agree_with_blazepose(movenet, around, dance, blazepose, blazepose_detector):
    found = blazepose.estimate([dance[0]], [blazepose.regions(blazepose_detector.detect([dance[0]])[0])])[0]
    keypoints = movenet.estimate([dance[0]], [around])[0]
    for name in ("left_shoulder", "right_shoulder", "left_elbow", "right_elbow", "left_knee", "right_knee"):
        theirs = found.xy[0, blazepose.skeleton.index(name)]
        assert np.linalg.norm(joint(keypoints, name) - theirs) < 20, name


def test_next_region_contains_the_person(movenet, around, dance):
    region = around
    for image in dance[::6]:
        keypoints = movenet.estimate([image], [region])[0]
        assert keypoints.presence[0] > 0.5
        region = keypoints.next_regions
        assert 250 < region.sizes[0, 0] < 700
    hips = (joint(keypoints, "left_hip") + joint(keypoints, "right_hip")) / 2
    np.testing.assert_allclose(region.centers[0], hips, atol=1e-3)


def test_no_person_has_low_presence_and_keeps_the_region(movenet, around):
    wall = np.full((496, 384, 3), 170, np.uint8)
    keypoints = movenet.estimate([wall], [around])[0]
    assert keypoints.presence[0] < 0.4
    np.testing.assert_array_equal(keypoints.next_regions.sizes, around.sizes)


def test_joints_beyond_the_image_have_score_0(movenet, around, dance):
    upper_half = dance[0][:250]
    keypoints = movenet.estimate([upper_half], [around])[0]
    beyond = keypoints.xy[0, :, 1] > 249.5
    assert beyond.any()
    assert not keypoints.scores[0, beyond].any()
