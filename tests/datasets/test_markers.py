"""Joint centres from markers, against a made-up person whose joints are known."""

import numpy as np
import pytest
from marker_person import marker_person
from pose_datasets import markers
from pose_datasets.mapping import POINTS


def errors(found, truth):
    """Point -> mean distance, mm."""
    return dict(zip(POINTS, 1000 * np.linalg.norm(found - truth, axis=-1).mean(axis=0), strict=True))


def test_known_joints_are_recovered_from_markers():
    seen, truth = marker_person()
    wrong = errors(markers.joint_centres(seen), truth)
    assert max(wrong.values()) < 12
    assert max(wrong[p] for p in ("pelvis", "left_hip", "right_hip", "thorax", "spine", "nose", "ears", "head")) < 6


def test_motion_moves_a_hip_that_the_regression_misses_and_no_farther_than_anatomy_allows():
    seen, truth = marker_person(hip_off=(0.0, -0.03, 0.0))
    wrong = errors(markers.joint_centres(seen), truth)
    assert 10 < wrong["left_hip"] < 24
    assert wrong["left_hip"] == pytest.approx(wrong["right_hip"], abs=0.5)


@pytest.mark.parametrize("rigid", [True, False])
def test_bone_lengths_are_constant_only_where_asked(rigid):
    seen, _ = marker_person()
    rng = np.random.default_rng(1)
    points = markers.joint_centres(seen + rng.normal(0, 0.003, seen.shape), rigid=rigid)
    for near, far in (("hip", "knee"), ("knee", "ankle"), ("shoulder", "elbow"), ("elbow", "wrist")):
        lengths = [
            np.linalg.norm(points[:, POINTS.index(f"{s}_{far}")] - points[:, POINTS.index(f"{s}_{near}")], axis=-1)
            for s in ("left", "right")
        ]
        assert (np.std(lengths) < 1e-9) == rigid
        assert np.std(lengths) < 0.01


def test_lost_marker_invalidates_only_its_frames():
    seen, _ = marker_person()
    broken = seen.copy()
    broken[100:120, markers.MARKERS.index("LKNE")] = np.nan
    broken[200:220, markers.MARKERS.index("LFIN")] = np.nan  # no joint needs it
    points = markers.joint_centres(broken)
    assert np.isnan(points[100:120]).all()
    kept = np.r_[0:100, 120 : len(seen)]
    np.testing.assert_allclose(points[kept], markers.joint_centres(seen)[kept], atol=2e-3)
