"""Whose hand is whose, with a network that sees a scene of known hands."""

import numpy as np
import pytest

from pose.networks.hands import HandOutputs, tracked_regions
from pose.structures.hand_points import POINTS
from pose.structures.skeletons import BLAZEPOSE33, COCO17
from pose.structures.smooth import HandFilter
from pose.structures.types import People, Regions
from pose.tracking.hands.tracker import HandTracker

IMAGE = np.zeros((480, 640, 3), np.uint8)


def hand(wrist, length=36.0):
    """(21, 2) px of an open hand that points down."""
    points = np.zeros((POINTS, 2), np.float32)
    for finger in range(5):
        for part in range(4):
            points[4 * finger + part + 1] = ((finger - 2) * length / 8, length * (0.4 + 0.2 * part))
    return points + np.asarray(wrist, np.float32)


class SceneNetwork:
    """Answers with the hand nearest to the middle of a region, if it lies in it."""

    def __init__(self, *hands):
        self.hands = [np.asarray(one, np.float32) for one in hands]

    def estimate(self, image, regions: Regions) -> HandOutputs:
        count = len(regions)
        points, presence = np.zeros((count, POINTS, 2), np.float32), np.full(count, 0.02, np.float32)
        for row in range(count):
            ways = [np.linalg.norm(one.mean(axis=0) - regions.centers[row]) for one in self.hands]
            if ways and min(ways) < regions.sizes[row, 0] / 2:
                points[row], presence[row] = self.hands[int(np.argmin(ways))], 0.95
        shapes = np.zeros((count, POINTS, 3), np.float32)
        shapes[..., :2] = (points - points[:, :1]) / 200
        return HandOutputs(points, shapes, presence)


def people(*middles, time=0.0, skeleton=COCO17, wrists=None, score=0.9, cut=False):
    """Bodies whose forearms hang down, 50 px long: wrists 40 px left and right of `middles`, at y = 300."""
    keypoints = np.zeros((len(middles), len(skeleton), 2), np.float32)
    for row, x in enumerate(middles):
        for sign, side in ((1, "left"), (-1, "right")):
            for joint, y in (("shoulder", 190), ("elbow", 250), ("wrist", 300)):
                keypoints[row, skeleton.index(f"{side}_{joint}")] = x + 40 * sign, y
    for (row, name), place in (wrists or {}).items():
        keypoints[row, skeleton.index(name)] = place
    scores = np.zeros(keypoints.shape[:2], np.float32)
    scores[keypoints.any(axis=2)] = score
    ids = np.arange(len(middles)) + 1
    return People(
        0,
        time,
        ids,
        np.zeros((len(middles), 4), np.float32),
        np.ones(len(middles), np.float32),
        keypoints,
        scores,
        cut=cut,
    )


@pytest.mark.parametrize("skeleton", [COCO17, BLAZEPOSE33])
def test_each_arm_gets_its_hand(skeleton):
    left, right = hand((340, 302)), hand((260, 302))
    hands = HandTracker(SceneNetwork(left, right), None, skeleton).step(IMAGE, people(300, skeleton=skeleton))
    assert hands.detected.all()
    np.testing.assert_allclose(hands.points[0], [left, right])
    assert hands.scores.max() == pytest.approx(0.95)


def test_six_people_keep_their_hands_apart():
    middles = [60 + 100 * k for k in range(6)]
    scene = [hand((x + sign * 40, 302), 30) for x in middles for sign in (1, -1)]
    hands = HandTracker(SceneNetwork(*scene), None, COCO17).step(IMAGE, people(*middles))
    assert hands.detected.all()
    np.testing.assert_allclose(hands.points.reshape(12, POINTS, 2), scene)


def test_one_hand_is_assigned_to_one_arm():
    """The wrists lie together: the hand belongs to the arm whose wrist is nearer."""
    only = hand((300, 302))
    body = people(300, wrists={(0, "left_wrist"): (301, 300), (0, "right_wrist"): (311, 300)})
    hands = HandTracker(SceneNetwork(only), None, COCO17).step(IMAGE, body)
    assert hands.detected[0].tolist() == [True, False]


def test_crossing_hands_keep_their_arms():
    """Left and right hand pass each other; each frame says where the wrists are."""
    tracker, network = HandTracker(network := SceneNetwork(), None, COCO17), network
    for step in range(21):
        left, right = (340 - 4 * step, 300), (260 + 4 * step, 316)
        network.hands = [hand(left), hand(right)]
        body = people(300, time=step / 30, wrists={(0, "left_wrist"): left, (0, "right_wrist"): right})
        hands = tracker.step(IMAGE, body)
        for side, wrist in enumerate((left, right)):
            if hands.detected[0, side]:
                assert np.linalg.norm(hands.points[0, side, 0] - wrist) < 12, (step, side)
    assert hands.detected.all()


def test_hand_without_an_arm_is_ignored():
    """A doll's hand of the right size beside the wrist, a huge one, and a tiny one."""
    for wrong in (hand((340, 345)), hand((340, 300), 200), hand((340, 302), 4)):
        assert not HandTracker(SceneNetwork(wrong), None, COCO17).step(IMAGE, people(300)).detected.any()


def test_hand_is_tracked_without_its_wrist_until_a_cut():
    network = SceneNetwork(hand((340, 302)))
    tracker = HandTracker(network, None, COCO17)
    tracker.step(IMAGE, people(300))
    assert tracker.step(IMAGE, people(300, time=0.03, score=0.1)).detected[0].tolist() == [True, False]
    assert not tracker.step(IMAGE, people(300, time=0.06, score=0.1, cut=True)).detected.any()


class PalmAt:
    """A palm detector that knows one region, and counts its runs."""

    def __init__(self, points):
        self.regions, self.runs = tracked_regions(points[None]), 0

    def detect(self, image, window=None):
        self.runs += 1
        return self.regions, np.ones(1, np.float32)


def test_palm_detector_runs_only_for_missed_hands():
    class Narrow(SceneNetwork):
        """Sees the hand only from a region around it."""

        def estimate(self, image, regions):
            found = super().estimate(image, regions)
            there = tracked_regions(self.hands[0][None]).centers
            far = np.linalg.norm(regions.centers - there, axis=1) > 2
            found.presence[far] = 0
            return found

    bent = hand((340, 302)) + (14, -12) * np.linspace(0, 1, POINTS, dtype=np.float32)[:, None]
    palms = PalmAt(bent)
    seen = HandTracker(Narrow(bent), palms, COCO17).step(IMAGE, people(300))
    assert seen.detected[0].tolist() == [True, False]
    assert palms.runs == 2
    nothing = HandTracker(SceneNetwork(), palms := PalmAt(bent), COCO17)
    for step in range(30):
        nothing.step(IMAGE, people(300, time=step / 30))
    assert palms.runs == 2 * 4  # 0.3 s apart, for both arms


def test_hand_filter_smooths_rest_and_follows_motion():
    rng = np.random.default_rng(0)
    rest = HandFilter()
    noisy = [hand((0, 0)) + rng.normal(0, 0.3, (POINTS, 2)).astype(np.float32) for _ in range(90)]
    calm = np.array([rest(points, 36.0, index / 30) for index, points in enumerate(noisy)])[30:]
    assert calm.std(axis=0).mean() < 0.6 * np.array(noisy)[30:].std(axis=0).mean()
    ends = []
    for fps in (30, 60):
        moving = HandFilter()
        for index in range(fps + 1):
            end = moving(hand((150 * index / fps, 0)), 36.0, index / fps)
        ends.append(end[0, 0])
    assert ends[0] == pytest.approx(150, abs=3)
    assert ends[0] == pytest.approx(ends[1], abs=1.0)
    jump = moving(hand((900, 0)), 36.0, 1.1)
    np.testing.assert_allclose(jump, hand((900, 0)))
