"""The shipped hand networks on composed images and a clip, and `pose-run --hands` from a video to files."""

import cv2
import numpy as np
import pytest
from pose_apps.run import main

import pose
from pose.networks.hands import WEIGHTS
from pose.networks.weights import FetchError, locate
from pose.structures.hand_points import LITTLE_KNUCKLE, MIDDLE_KNUCKLE
from pose.structures.skeletons import COCO17
from pose.structures.types import People
from pose.tracking.hands.free import FreeHandTracker
from pose.tracking.hands.tracker import HandTracker

SIDE = 240  # px of a pasted image
SIZE = (1280, 720)


@pytest.fixture(scope="module")
def hand(videos, networks):
    """A right hand: its image (SIDE, SIDE, 3) and points (21, 2) px in it."""
    capture = cv2.VideoCapture(str(videos / "hands" / "cam1_test.mp4"))
    frames = [capture.read()[1] for _ in range(61)]
    capture.release()
    image = np.ascontiguousarray(frames[-1][:, :, ::-1])
    points = FreeHandTracker(*networks).step(image, 0.0).points[0]
    side = 2.2 * float(np.ptp(points, axis=0).max())
    corner = np.clip(points.mean(axis=0) - side / 2, 0, np.array(image.shape[1::-1]) - side)
    low, high = corner.astype(int), (corner + side).astype(int)
    patch = cv2.resize(image[low[1] : high[1], low[0] : high[0]], (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return patch, (points - low) * SIDE / side


def scene(*pasted):
    """A grey image with patches (image, middle px)."""
    image = np.full((SIZE[1], SIZE[0], 3), 120, np.uint8)
    for patch, (x, y) in pasted:
        left, top = round(x - SIDE / 2), round(y - SIDE / 2)
        x0, y0, x1, y1 = max(0, left), max(0, top), min(SIZE[0], left + SIDE), min(SIZE[1], top + SIDE)
        image[y0:y1, x0:x1] = patch[y0 - top : y1 - top, x0 - left : x1 - left]
    return image


def at(points, middle):
    """Points of a patch whose middle lies at `middle`."""
    return points - SIDE / 2 + np.asarray(middle)


def arms(*hands, time=0.0):
    """People with a right and a left arm, or None, that end at points (21, 2) px of hands."""
    keypoints = np.zeros((len(hands), len(COCO17), 2), np.float32)
    for row, both in enumerate(hands):
        for side, points in zip(("right", "left"), both, strict=True):
            if points is None:
                continue
            along = points[MIDDLE_KNUCKLE] - points[0]
            forearm = 2.4 * along  # the middle knuckle lies about 0.4 forearms beyond the wrist
            for joint, place in (("wrist", 0.0), ("elbow", -1.0), ("shoulder", -2.3)):
                keypoints[row, COCO17.index(f"{side}_{joint}")] = points[0] + place * forearm
    scores = np.where(keypoints.any(axis=2), 0.9, 0).astype(np.float32)
    count = len(hands)
    boxes = np.zeros((count, 4), np.float32)
    return People(0, time, np.arange(count) + 1, boxes, np.ones(count, np.float32), keypoints, scores)


def apart(points, expected):
    """Mean distance in lengths of the palm."""
    palm = np.linalg.norm(expected[MIDDLE_KNUCKLE] - expected[0])
    return float(np.linalg.norm(points - expected, axis=1).mean() / palm)


@pytest.fixture
def step(networks):
    """step(image, people) -> hands, with a new tracker."""
    return lambda image, people: HandTracker(*networks, COCO17).step(image, people)


RIGHT = 1  # row of `Hands`: left, right


def test_pasted_hand_is_assigned_to_its_arm_only(hand, step):
    patch, points = hand
    here, empty = at(points, (400, 360)), at(points, (900, 360))
    hands = step(scene((patch, (400, 360))), arms((here, empty)))
    assert hands.detected[0].tolist() == [False, True]
    assert apart(hands.points[0, RIGHT], here) < 0.25


def test_crossing_hands_keep_their_arms(hand, networks):
    """Two hands pass in front of each other within a second; the nearer one covers the other."""
    patch, points = hand
    tracker = HandTracker(*networks, COCO17)
    for index in range(13):
        first, second = (340 + 50 * index, 330), (940 - 50 * index, 390)
        one, other = at(points, first), at(points, second)
        people = arms((one, None), (other, None), time=index / 15)
        hands = tracker.step(scene((patch, first), (patch, second)), people)
        for row, own in enumerate((one, other)):
            if hands.detected[row, RIGHT]:
                assert np.linalg.norm(hands.points[row, RIGHT, 0] - own[0]) < 40, (index, row)
    assert hands.detected[:, RIGHT].all()
    assert apart(hands.points[0, RIGHT], one) < 0.3
    assert apart(hands.points[1, RIGHT], other) < 0.3


def test_noise_and_shapes_give_no_hands(hand, step):
    _, points = hand
    rng = np.random.default_rng(0)
    noise = cv2.GaussianBlur(rng.integers(0, 256, (SIZE[1], SIZE[0], 3), np.uint8), (0, 0), 3)
    shapes = scene()
    for middle in ((300, 360), (900, 360)):
        cv2.circle(shapes, middle, 60, (210, 160, 130), -1)  # the colour of skin
        cv2.rectangle(shapes, (middle[0] - 20, 420), (middle[0] + 20, 640), (210, 160, 130), -1)
    people = arms((at(points, (300, 360)), at(points, (900, 360))))
    for image in (noise, shapes, scene()):
        assert not step(image, people).detected.any()
    assert points[LITTLE_KNUCKLE].any()


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


@pytest.fixture(scope="module")
def hand_weights():
    try:
        for name in WEIGHTS:
            locate(name)
    except FetchError as error:
        pytest.skip(str(error))


def test_run_writes_hands_and_the_cache_restores_them(videos, at_hand, hand_weights, tmp_path, capsys):
    clip = videos / "dance.mp4"
    cached = ["--hands", "--cache", str(tmp_path / "cache"), "--formats", "npz", "--end", "0.2", "--quiet"]
    for out in ("first", "second"):
        assert main([str(clip), "--out", str(tmp_path / out), *cached]) == 0
    one, other = (pose.load(tmp_path / out / "poses.npz") for out in ("first", "second"))
    assert (one.hand_scores() > 0.8).all()
    assert (one.table.hand_keypoints == other.table.hand_keypoints).all()
    assert {model.name for model in one.table.run.models if model.role == "hands"} == set(WEIGHTS)
    body, hands = one.table.keypoints[:, [15, 16]], one.table.hand_keypoints[:, :, 0]
    assert abs(body - hands).max() < 20  # px: each hand hangs on its own wrist
