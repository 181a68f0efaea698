"""Keypoint similarity: its values, and identities where boxes alone would mix people up."""

import numpy as np
import pytest
from pose_fakes import STANDING

from pose.structures.skeletons import H36M17
from pose.tracking.box_trackers import BOX_TRACKERS
from pose.tracking.identities import UNASSIGNED, Identities, joint_sigmas, keypoint_similarity

PICTURE = np.zeros((432, 768, 3), np.uint8)


def pose(x, mirrored=False):
    """(17, 3) a person at x px who walks to the right, or to the left."""
    body = STANDING[:, :2] * 200 * [-1 if mirrored else 1, 1]
    body[[2, 3, 12, 13], 0] += -30 if mirrored else 30
    return np.concatenate([body + np.array([x, 200]), np.ones((17, 1))], axis=1).astype(np.float32)


def box(points):
    return np.concatenate([points[:, :2].min(axis=0), points[:, :2].max(axis=0)])


def test_similarity_is_one_for_the_same_pose_and_falls_with_distance():
    sigmas, area = joint_sigmas(H36M17), np.full(1, 2e4, np.float32)
    similar = [keypoint_similarity(pose(0)[None], pose(x)[None], area, sigmas)[0, 0] for x in (0, 5, 20, 200)]
    assert similar[0] == 1
    assert similar == sorted(similar, reverse=True)
    assert similar[-1] < 0.01


def test_similarity_uses_jointly_visible_points():
    a, b = pose(0), pose(0)
    b[3, :2], b[3, 2] = np.nan, 0
    sigmas, area = joint_sigmas(H36M17), np.full(1, 2e4, np.float32)
    assert keypoint_similarity(a[None], b[None], area, sigmas)[0, 0] == 1
    b[:, 2] = 0
    assert keypoint_similarity(a[None], b[None], area, sigmas)[0, 0] == 0


@pytest.mark.parametrize("tracker", ["bytetrack", "ocsort"])
def test_people_turning_back_at_a_meeting_keep_ids(tracker, rng):
    """Boxes alone say that they walked through each other; the poses say that they did not."""
    identities = Identities(tracker, skeleton=H36M17)
    for frame in range(60):
        away = 5 + 4 * abs(30 - frame)
        people = np.stack([pose(384 - away), pose(384 + away, mirrored=True)])
        people[..., :2] += rng.normal(0, 1, (2, 17, 2))
        order = rng.permutation(2)
        boxes = np.stack([box(person) for person in people]).astype(np.float32)[order]
        nobody = np.full(2, UNASSIGNED, np.int64)
        ids = identities.assign(boxes, np.full(2, 0.9, np.float32), nobody, frame / 30, PICTURE, people[order])
        if frame == 0:
            first = ids[np.argsort(order)]
        np.testing.assert_array_equal(ids[np.argsort(order)], first)


@pytest.mark.parametrize("tracker", BOX_TRACKERS)
def test_crossing_people_keep_ids(tracker, rng):
    identities = Identities(tracker, skeleton=H36M17)
    for frame in range(60):
        people = np.stack([pose(264 + 4 * frame), pose(500 - 4 * frame, mirrored=True)])
        boxes = np.stack([box(person) for person in people]).astype(np.float32)
        nobody = np.full(2, UNASSIGNED, np.int64)
        ids = identities.assign(boxes, np.full(2, 0.9, np.float32), nobody, frame / 30, PICTURE, people)
        assert ids.tolist() == [1, 2]
