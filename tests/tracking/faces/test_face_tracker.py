"""Whose face is whose, with a network that sees a scene of known faces."""

import numpy as np
import pytest

from pose.networks.faces import FaceOutputs, tracked_regions
from pose.structures.face_points import POINTS
from pose.structures.skeletons import BLAZEPOSE33, COCO17
from pose.structures.types import People, Regions
from pose.tracking.faces.tracker import FaceTracker

IMAGE = np.zeros((480, 640, 3), np.uint8)


def face(middle, size=60.0) -> np.ndarray:
    """(468, 3) px of an upright face around its nose."""
    points = np.random.default_rng(2).uniform(-0.5, 0.5, (POINTS, 3)) * size
    points[33, :2], points[263, :2] = (-0.3 * size, -0.2 * size), (0.3 * size, -0.2 * size)
    points[:, :2] += np.asarray(middle) - points[:, :2].mean(axis=0)
    points[33, 1] = points[263, 1]
    points[[10, 152], :2] = np.add(middle, [(0, -size / 2), (0, size / 2)])
    return points.astype(np.float32)


class SceneNetwork:
    """Answers with the face nearest to the middle of a region, if it lies in it."""

    def __init__(self, *faces):
        self.faces, self.regions = list(faces), 0

    def estimate(self, image, regions: Regions) -> FaceOutputs:
        count = len(regions)
        self.regions += count
        points, presence = np.zeros((count, POINTS, 3), np.float32), np.full(count, 0.02, np.float32)
        for row in range(count):
            ways = [np.linalg.norm(one[:, :2].mean(axis=0) - regions.centers[row]) for one in self.faces]
            if ways and min(ways) < regions.sizes[row, 0] / 2:
                points[row], presence[row] = self.faces[int(np.argmin(ways))], 0.95
        return FaceOutputs(points, presence)


def people(*noses, time=0.0, skeleton=COCO17, size=60.0, score=0.9, unsure=(), cut=False):
    keypoints = np.zeros((len(noses), len(skeleton), 2), np.float32)
    places = {
        "nose": (0, 0), "left_eye": (0.2, -0.2), "right_eye": (-0.2, -0.2), "left_ear": (0.4, -0.1),
        "right_ear": (-0.4, -0.1), "left_shoulder": (1, 1), "right_shoulder": (-1, 1),
    }  # fmt: skip
    for row, nose in enumerate(noses):
        for name, away in places.items():
            keypoints[row, skeleton.index(name)] = np.asarray(nose) + size * np.asarray(away)
    scores = np.where(keypoints.any(axis=2), score, 0).astype(np.float32)
    scores[:, [skeleton.index(name) for name in unsure]] = 0
    count = len(noses)
    return People(
        0, time, np.arange(count) + 1, np.zeros((count, 4), np.float32), np.ones(count, np.float32), keypoints, scores,
        cut=cut,
    )  # fmt: skip


@pytest.mark.parametrize("skeleton", [COCO17, BLAZEPOSE33])
def test_each_person_gets_their_face(skeleton):
    middles = [(60 + 100 * k, 100) for k in range(6)]
    tracker = FaceTracker(SceneNetwork(*map(face, middles)), skeleton)
    faces = tracker.step(IMAGE, people(*middles, skeleton=skeleton))
    assert faces.detected.all()
    np.testing.assert_allclose(faces.points, np.stack([face(middle) for middle in middles]), atol=1e-4)


def test_unseen_nose_starts_no_face_search():
    network = SceneNetwork(face((300, 200)))
    faces = FaceTracker(network, COCO17).step(IMAGE, people((300, 200), unsure=("nose",)))
    assert not faces.detected.any()
    assert network.regions == 0


def test_face_away_from_the_nose_is_rejected():
    faces = FaceTracker(SceneNetwork(face((352, 200))), COCO17).step(IMAGE, people((300, 200)))
    assert not faces.detected.any()


def test_reversed_face_is_rejected():
    upside_down = face((300, 200))
    upside_down[:, :2] = 2 * np.array([300, 200], np.float32) - upside_down[:, :2]
    faces = FaceTracker(SceneNetwork(upside_down), COCO17).step(IMAGE, people((300, 200)))
    assert not faces.detected.any()


def test_face_is_assigned_to_the_nearer_person():
    faces = FaceTracker(SceneNetwork(face((300, 200))), COCO17).step(IMAGE, people((310, 200), (302, 200)))
    assert faces.detected.tolist() == [False, True]


def test_face_is_tracked_from_its_last_points_until_a_cut():
    network = SceneNetwork(face((300, 200)))
    tracker = FaceTracker(network, COCO17)
    tracker.step(IMAGE, people((300, 200)))
    assert network.regions == 2  # from the body, and once more from nearer
    faces = tracker.step(IMAGE, people((300, 200), time=0.04, unsure=("nose",)))
    assert faces.detected.all()
    assert network.regions == 3
    assert not tracker.step(IMAGE, people((300, 200), time=0.08, unsure=("nose",), cut=True)).detected.any()


def test_face_regions_rotate_with_the_eyes():
    points = face((0, 0))
    cos, sin = np.cos(0.5), np.sin(0.5)
    turned = points.copy()
    turned[:, :2] = points[:, :2] @ np.array([[cos, sin], [-sin, cos]]) + (300, 200)
    one, other = tracked_regions(points[None]), tracked_regions(turned[None])
    assert one.angles[0] == pytest.approx(0, abs=1e-6)
    assert other.angles[0] == pytest.approx(0.5, abs=1e-5)
    np.testing.assert_allclose(other.sizes, one.sizes, rtol=1e-4)
