"""The shipped networks on the clip of hands."""

import cv2
import numpy as np
import pytest

from pose.tracking.hands.free import FreeHandTracker


@pytest.fixture(scope="module")
def images(videos):
    capture = cv2.VideoCapture(str(videos / "hands" / "cam1_test.mp4"))
    frames = [np.ascontiguousarray(capture.read()[1][:, :, ::-1]) for _ in range(64)]
    capture.release()
    return frames[60:]


def test_hand_points_follow_translation_and_rotation(networks, images):
    """The same hand in an image turned by 90 degrees, mirrored in nothing: points and shapes turn with it."""
    network, palms = networks
    image = images[0]
    turned = np.ascontiguousarray(np.rot90(image))
    both = []
    for one in (image, turned):
        both.append(FreeHandTracker(network, palms).step(one, 0.0))
    assert [len(hands.presence) for hands in both] == [1, 1]
    last = image.shape[1] - 1
    back = np.stack([last - both[1].points[0, :, 1], both[1].points[0, :, 0]], axis=1)
    assert np.linalg.norm(back - both[0].points[0], axis=1).mean() < 8
    shapes = [hands.shapes[0] for hands in both]
    unturned = np.stack([-shapes[1][:, 1], shapes[1][:, 0], shapes[1][:, 2]], axis=1)
    assert np.linalg.norm(unturned - shapes[0], axis=1).mean() < 0.015


def test_hand_is_tracked_without_the_palm_detector(networks, images):
    tracker = FreeHandTracker(*networks, max_hands=1)
    first = tracker.step(images[0], 0.0)
    tracker._palms = None  # a second run would be an error
    for index, image in enumerate(images[1:], start=1):
        hands = tracker.step(image, index / 30)
    assert hands.presence[0] > 0.9
    assert np.linalg.norm(hands.points[0] - first.points[0], axis=1).mean() < 120
