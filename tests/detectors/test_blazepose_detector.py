"""BlazePose's detector: its anchors and its merging against plain loops, and the people in real images."""

import av
import numpy as np
import pytest
from pose_detectors.blazepose import BlazePoseDetector, anchors, decode

from pose.networks import crops
from pose.networks.crops import box_iou


@pytest.fixture(scope="module")
def detector(weights_dir):
    return BlazePoseDetector(model=weights_dir / "blazepose-detector.tflite")


def read_frames(path, indices):
    with av.open(str(path)) as container:
        frames = enumerate(container.decode(video=0))
        return [frame.to_ndarray(format="rgb24") for index, frame in frames if index in indices]


def slow_anchors():
    centres = []
    for stride, boxes in ((8, 2), (16, 2), (32, 6)):
        for row in range(224 // stride):
            for column in range(224 // stride):
                centres += [((column + 0.5) * stride / 224, (row + 0.5) * stride / 224)] * boxes
    return np.array(centres)


def slow_nms(found, scores, overlap):
    left = sorted(range(len(found)), key=lambda i: -scores[i])
    merged = []
    while left:
        group = [i for i in left if box_iou(found[[left[0]], :4], found[[i], :4])[0, 0] > overlap]
        left = [i for i in left if i not in group]
        total = sum(scores[i] for i in group)
        merged.append((sum(scores[i] * found[i] for i in group) / total, scores[group[0]]))
    return merged


def test_anchors_equal_the_published_2254():
    np.testing.assert_allclose(anchors(), slow_anchors(), atol=1e-6)
    assert len(anchors()) == 2254


def test_decode_places_box_and_points_around_the_anchor():
    row = np.array([[22.4, -22.4, 44.8, 89.6, 0, 0, 112, 0, 0, 112, -112, 0]], np.float32)
    expected = [0.5, 0.2, 0.7, 0.6, 0.5, 0.5, 1.0, 0.5, 0.5, 1.0, 0.0, 0.5]
    np.testing.assert_allclose(decode(row, np.array([[0.5, 0.5]], np.float32))[0], expected, atol=1e-6)


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_weighted_nms_equals_a_slow_loop(rng, count):
    corners = rng.uniform(0, 0.6, (count, 2))
    sides = rng.uniform(0.1, 0.4, (count, 2))
    found = np.hstack([corners, corners + sides, rng.uniform(0, 1, (count, 8))]).astype(np.float32)
    scores = rng.permutation(np.linspace(0.5, 1, count)).astype(np.float32)
    merged, best = crops.weighted_nms(found, scores, 0.3)
    expected = slow_nms(found, scores, 0.3)
    assert len(merged) == len(best) == len(expected)
    for row, score, (want_row, want_score) in zip(merged, best, expected, strict=True):
        np.testing.assert_allclose(row, want_row, rtol=1e-5)
        assert score == want_score


def test_dancer_is_found_with_a_box_around_the_body(detector, videos):
    boxes = detector.detect(read_frames(videos / "dance.mp4", {100}))[0]
    assert len(boxes) == 1
    assert boxes.scores[0] > 0.9
    # Seen in the image: head at (213, 75), feet at (262, 435), hands at (125, 240) and (265, 285).
    x0, y0, x1, y1 = boxes.xyxy[0]
    assert x0 < 135
    assert 30 < y0 < 85
    assert x1 > 270
    assert 425 < y1 < 500
    assert boxes.regions is not None
    assert np.hypot(*(boxes.regions.centers[0] - (230, 250))) < 30  # the hips


def test_walker_is_found_and_the_empty_room_is_not(detector, videos):
    empty, walker = detector.detect(read_frames(videos / "walk-by.mp4", {200, 300}))
    assert len(empty) == 0
    assert len(walker) == 1
    assert box_iou(walker.xyxy, np.array([[385, 5, 530, 410]], np.float32))[0, 0] > 0.6


def test_detection_rotates_with_the_image(detector, videos):
    image = read_frames(videos / "dance.mp4", {100})[0]
    upright, turned = detector.detect([image, np.ascontiguousarray(np.rot90(image, -1))])
    assert upright.regions is not None
    assert turned.regions is not None
    quarter = np.mod(turned.regions.angles[0] - upright.regions.angles[0], 2 * np.pi)
    assert quarter == pytest.approx(np.pi / 2, abs=0.15)
    x, y = upright.regions.centers[0]
    assert np.hypot(*(turned.regions.centers[0] - (image.shape[0] - 1 - y, x))) < 15
