"""Joint definitions of detectors and data sets, and the way from databases' skeletons to our points."""

import numpy as np
import pytest
from motion import STANDING, waving_clip
from pose_datasets import bvh, filming, mapping
from pose_datasets.bodies import PARENTS, pelvis_frame, to_bones

from pose.errors import PoseError
from pose.structures.skeletons import COCO17, H36M_NAMES, to_h36m17


def points(count=200):
    clip = waving_clip()
    return np.tile(clip.points[:60:3], (count, 1, 1, 1))


def test_detector_joints_equal_the_skeleton_conversion():
    """A COCO skeleton made from the body, converted as at inference."""
    names = {name: i for i, name in enumerate(H36M_NAMES)}
    xyz = np.zeros((17, 3), np.float32)
    for i, name in enumerate(COCO17.names):
        if name in names:
            xyz[i] = STANDING[names[name]]
    xyz[COCO17.index("nose")] = STANDING[17]
    for side, sign in (("left", 1), ("right", -1)):
        xyz[COCO17.index(f"{side}_ear")] = STANDING[18] + [sign * 0.08, 0, 0]
    expected, scores = to_h36m17(xyz, np.ones(17, np.float32), COCO17)
    assert scores.min() == 1
    np.testing.assert_allclose(filming.observed_joints(STANDING), expected, atol=1e-6)


def test_canonical_joint_definitions_leave_poses_unchanged(rng):
    body = points(5)
    same = filming.redefine(rng, body, filming.CANONICAL)
    np.testing.assert_allclose(same, body[:, :, :17], atol=1e-6)
    np.testing.assert_allclose(filming.detector_points(rng, body, filming.CANONICAL), body, atol=1e-6)


def test_joint_definition_offsets_are_small_and_constant(rng):
    body = points()
    joints = filming.redefine(rng, body, filming.DefinitionConfig())
    moved = np.linalg.norm(joints - body[:, :, :17], axis=-1)
    # A fixed place in the body: it does not depend on the pose of a rigid trunk, which this body has.
    trunk = [0, 1, 4, 7, 8, 9, 10, 11, 14]
    assert moved[:, :, trunk].std(axis=1).max() < 1e-5
    still = [2, 3, 5, 6, 12, 15]
    assert moved[:, :, still].max() == 0
    # Some keep our definition, the rest spread over centimetres.
    assert 0.15 < (moved.max(axis=(1, 2)) < 1e-6).mean() < 0.35
    assert 0.01 < moved[:, 0, 10].mean() < 0.15
    assert moved.max() < 0.3


def test_hip_offsets_are_symmetric_and_move_the_pelvis(rng):
    body = points(50)
    joints = body[:, :, :17].copy()
    filming.shift_joint_pair(rng, joints, [4, 1], 0.02)
    np.testing.assert_allclose(joints[:, :, 0], (joints[:, :, 1] + joints[:, :, 4]) / 2, atol=1e-6)
    frame = np.swapaxes(pelvis_frame(to_bones(body)), -1, -2)
    left, right = ((frame @ (joints - body[:, :, :17])[:, :, j, :, None])[..., 0] for j in (4, 1))
    np.testing.assert_allclose(left * [-1, 1, 1], right, atol=1e-5)


FORMATS = {"asf": "07_01", "daz": "12_01", "motion builder": "26_01", "motion builder, other names": "131_01"}


def lengths(points):
    """(T, 18) m of the bones of (T, 19, 3) points."""
    return np.linalg.norm(points[:, 1:] - points[:, PARENTS[1:]], axis=-1)


@pytest.mark.parametrize("trial", FORMATS.values(), ids=FORMATS)
class TestRealPeople:
    def test_mapped_limbs_have_constant_length(self, trials, trial):
        bones = lengths(trials[trial])
        limbs = [0, 1, 2, 3, 4, 5, 11, 12, 14, 15, 16, 17]
        assert bones[:, limbs].std(axis=0).max() < 1e-6
        # Trunk points are interpolated between bones, so they breathe, a little.
        assert bones.std(axis=0).max() < 0.015

    def test_mapped_bodies_have_human_size(self, trials, trial):
        bones = lengths(trials[trial]).mean(axis=0)
        hip, thigh, shin, trunk, arm, forearm = bones[0], bones[1], bones[2], bones[6] + bones[7], bones[11], bones[12]
        assert 0.06 < hip < 0.12
        assert 0.33 < thigh < 0.5
        assert 0.33 < shin < 0.5
        assert 0.38 < trunk < 0.6
        assert 0.22 < arm < 0.36
        assert 0.18 < forearm < 0.34

    def test_feet_are_near_the_floor_and_the_head_on_top(self, trials, trial):
        points = trials[trial]
        assert 0.02 < np.percentile(points[:, [3, 6], 1].min(axis=1), 10) < 0.15
        assert 1.3 < np.percentile(points[:, mapping.POINTS.index("head"), 1], 95) < 1.95

    def test_nose_and_knees_point_forward(self, trials, trial):
        points = trials[trial]
        forward = pelvis_frame(to_bones(points))[..., 2]
        nose = points[:, mapping.NOSE] - points[:, mapping.EARS]
        assert ((nose * forward).sum(axis=-1) > 0).mean() > 0.95
        for hip, knee, ankle in ((1, 2, 3), (4, 5, 6)):
            bend = points[:, knee] - (points[:, hip] + points[:, ankle]) / 2
            assert (bend * forward).sum(axis=-1).mean() > 0


def test_formats_agree_on_one_subject(trials):
    """Subject 131 is there as ASF/AMC (trial 4) and as BVH for MotionBuilder."""
    a, b = lengths(trials["131_04"]).mean(axis=0), lengths(trials["131_01"]).mean(axis=0)
    np.testing.assert_allclose(a, b, atol=0.012)


def test_daz_figure_has_the_proportions_of_the_recorded_people(trials):
    """The Daz conversions put the motion on one figure; our points on it lie where they lie on the others."""
    people = np.mean([lengths(trials[t]).mean(axis=0) for t in ("07_01", "26_01", "131_04")], axis=0)
    figure = lengths(trials["12_01"]).mean(axis=0)
    middle = [6, 7, 8, 9, 16, 17]  # trunk, neck and head
    np.testing.assert_allclose(figure[middle], people[middle], atol=0.035)


def test_unknown_skeleton_is_refused():
    motion = bvh.BvhMotion(("a",), (-1,), np.zeros((1, 3)), ((),), np.zeros((2, 0)), 30.0)
    with pytest.raises(PoseError, match=r"a\.bvh: the joint names are not those of a known conversion"):
        mapping.bvh_points(motion, "a.bvh")
