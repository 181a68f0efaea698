import numpy as np
import pytest

from pose.networks.estimators.movenet import MoveNet
from pose.networks.options import StageOptions
from pose.structures.skeletons import COCO17
from pose.structures.types import Boxes

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
