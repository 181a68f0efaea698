"""From the databases' skeletons to our points, on real recordings: plausible people, and the formats agree."""

import numpy as np
import pytest
from pose_datasets import bvh, mapping
from pose_datasets.bodies import PARENTS, pelvis_frame, to_bones

from pose.errors import PoseError

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
