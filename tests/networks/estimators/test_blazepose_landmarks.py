"""BlazePose's landmarks: the refinement against a plain loop, invariances on a real image, MediaPipe as oracle."""

import json
import math
from pathlib import Path

import cv2
import numpy as np
import pytest

from pose.errors import PoseError
from pose.networks.estimators.blazepose import BlazePose, refine
from pose.networks.weights.store import Store
from pose.structures.types import Boxes, Regions
from pose.tracking.people_tracker import PeopleTracker

REFERENCE = Path(__file__).with_name("mediapipe_dance.json")


def slow_refine(points, heat):
    side = heat.shape[0]
    refined = points.copy()
    for joint, (x, y) in enumerate(points):
        column, row = int(x * side), int(y * side)
        if not (0 <= column < side and 0 <= row < side):
            continue
        total = sum_x = sum_y = best = 0.0
        for r in range(max(row - 3, 0), min(row + 4, side)):
            for c in range(max(column - 3, 0), min(column + 4, side)):
                weight = 1 / (1 + math.exp(-heat[r, c, joint]))
                total += weight
                sum_x += c * weight
                sum_y += r * weight
                best = max(best, weight)
        if best >= 0.5:
            refined[joint] = sum_x / total / side, sum_y / total / side
    return refined


@pytest.mark.parametrize("level", [-6.0, 0.0, 6.0])
def test_refine_equals_a_slow_loop(rng, level):
    points = rng.uniform(-0.2, 1.2, (39, 2)).astype(np.float32)
    points[:4] = [[0, 0], [0.999, 0.999], [-0.001, 0.5], [0.5, 1.0]]
    heat = rng.normal(level, 2, (64, 64, 39)).astype(np.float32)
    np.testing.assert_allclose(refine(points, heat), slow_refine(points, heat), atol=1e-5)


def first(blazepose, detector, image):
    regions = blazepose.regions(detector.detect([image])[0])[:1]
    return regions, blazepose.estimate([image], [regions])[0]


def height(keypoints):
    return np.ptp(keypoints.xy[0, :, 1])


def test_landmarks_of_the_dancer_lie_on_the_body(blazepose, blazepose_detector, dance):
    _, found = first(blazepose, blazepose_detector, dance[0])
    assert found.presence[0] > 0.95
    named = dict(zip(blazepose.skeleton.names, found.xy[0], strict=True))
    assert named["nose"][1] < named["left_shoulder"][1] < named["left_hip"][1] < named["left_knee"][1]
    assert named["left_knee"][1] < named["left_ankle"][1]
    assert found.scores[0].min() > 0.3


@pytest.mark.parametrize("degrees", [90, -90, 180, 30])
def test_landmarks_rotate_with_the_image(blazepose, blazepose_detector, dance, degrees):
    regions, found = first(blazepose, blazepose_detector, dance[0])
    side = 800
    turn = cv2.getRotationMatrix2D((192, 248), -degrees, 1.0)  # OpenCV turns counter-clockwise
    turn[:, 2] += side / 2 - np.array([192, 248])
    turned = cv2.warpAffine(dance[0], turn, (side, side), borderMode=cv2.BORDER_REPLICATE)
    centers = (regions.centers @ turn[:, :2].T + turn[:, 2]).astype(np.float32)
    angles = (regions.angles + np.deg2rad(degrees)).astype(np.float32)
    again = blazepose.estimate([turned], [Regions(centers, regions.sizes, angles)])[0]
    distances = np.linalg.norm(again.xy - (found.xy @ turn[:, :2].T + turn[:, 2]), axis=2)
    assert np.median(distances) < 0.005 * height(found)


def test_next_region_contains_the_person(blazepose, blazepose_detector, dance):
    regions, found = first(blazepose, blazepose_detector, dance[0])
    assert np.hypot(*(found.next_regions.centers - regions.centers)[0]) < 0.05 * regions.sizes[0, 0]
    assert found.next_regions.sizes[0, 0] == pytest.approx(regions.sizes[0, 0], rel=0.1)


def test_each_region_of_each_image_has_a_result(blazepose, blazepose_detector, dance):
    one = blazepose.regions(blazepose_detector.detect([dance[0]])[0])[:1]
    two = Regions.concatenate([one, Regions(one.centers + 200, one.sizes, one.angles)])
    answers = blazepose.estimate([dance[0], dance[1], dance[0]], [two, Regions.empty(), one])
    assert [len(answer) for answer in answers] == [2, 0, 1]
    np.testing.assert_array_equal(answers[0].xy[0], answers[2].xy[0])


def test_joint_outside_the_image_is_not_seen(blazepose, blazepose_detector, dance):
    regions, found = first(blazepose, blazepose_detector, dance[0])
    cut = int(found.xy[0, [23, 24], 1].mean())
    upper = blazepose.estimate([dance[0][:cut]], [regions])[0]
    below = upper.xy[0, :, 1] > cut - 0.5
    assert below.sum() >= 6
    assert (upper.scores[0, below] == 0).all()
    assert (upper.scores[0, :11] > 0.5).all()


def test_box_without_a_region_gives_a_usable_one(blazepose, blazepose_detector, dance):
    _, found = first(blazepose, blazepose_detector, dance[0])
    corners = np.concatenate([found.xy[0].min(axis=0), found.xy[0].max(axis=0)])
    square = blazepose.regions(Boxes(corners[None], np.ones(1, np.float32)))
    again = blazepose.estimate([dance[0]], [square])[0]
    assert np.median(np.linalg.norm(again.xy - found.xy, axis=2)) < 0.02 * height(found)


def test_landmarks_equal_recorded_mediapipe_output(blazepose, blazepose_detector, dance):
    """Oracle: `python -m benchmarks.speed agreement --record` on `dance.mp4`."""
    reference = json.loads(REFERENCE.read_text(encoding="utf-8"))["landmarks_px"]
    stage = PeopleTracker(blazepose_detector, blazepose)
    distances = []
    for index, image in enumerate(dance):
        people = stage.step(image, index, index / 30)
        if str(index) in reference:
            theirs = np.array(reference[str(index)])
            distances.append(np.linalg.norm(people.keypoints[0] - theirs, axis=1) / np.ptp(theirs[:, 1]))
    assert len(distances) == 10
    assert np.median(distances) < 0.005
    assert np.percentile(distances, 95) < 0.015


@pytest.mark.parametrize("content", [b"", b"not a network" * 100])
def test_invalid_network_file_is_named(tmp_path, content):
    path = tmp_path / "broken.tflite"
    path.write_bytes(content)
    with pytest.raises(PoseError, match=r"broken\.tflite: not a readable LiteRT model"):
        BlazePose(model=path)


def test_heavy_agrees_with_full_roughly(blazepose, blazepose_detector, dance):
    """Where the file is in the weight cache or a folder of POSE_WEIGHTS_DIR: it is not a file of the tests."""
    model = Store.from_environment().find("blazepose-landmark-heavy")
    if model is None:
        pytest.skip("blazepose-landmark-heavy is not at hand")
    regions, found = first(blazepose, blazepose_detector, dance[0])
    heavy = BlazePose(model=model, variant="heavy")
    again = heavy.estimate([dance[0]], [regions])[0]
    assert heavy.name == "blazepose-heavy"
    assert 0 < np.median(np.linalg.norm(again.xy - found.xy, axis=2)) < 0.03 * height(found)
