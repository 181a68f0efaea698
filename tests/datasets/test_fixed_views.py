"""People before a fixed camera: seen where they are, the world kept, each piece the same whatever else there is."""

import numpy as np
import pytest
from pose_datasets.mocap import load_source

from benchmarks.common.views import MAX_PIECE_FRAMES, fixed_views
from pose.structures.camera import project
from pose.structures.skeletons import get_skeleton, to_h36m17


@pytest.fixture(scope="module")
def clips(shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mocap")
    (folder / "07.zip").symlink_to(shared / "mocap" / "cmu" / "07.zip")
    return load_source(folder)


def test_exact_views_project_the_world(clips):
    for view in fixed_views(clips, detector=False)[:3]:
        joints = view.camera_joints
        np.testing.assert_allclose(project(joints, view.seen.camera.matrix), view.seen.keypoints, atol=0.05)
        np.testing.assert_allclose(joints @ view.rotation + view.centre, view.joints, atol=1e-4)
        inside = (view.seen.keypoints > 0) & (view.seen.keypoints < np.array(view.seen.camera.size))
        assert inside.mean() > 0.98
        assert len(view.seen) <= MAX_PIECE_FRAMES
        assert view.up[1] < -0.6
        assert view.centre[1] > 0.2


def test_detected_views_have_errors(clips):
    exact, seen = fixed_views(clips, detector=False)[0], fixed_views(clips, detector=True)[0]
    np.testing.assert_array_equal(exact.centre, seen.centre)
    pixels, scores = to_h36m17(seen.seen.keypoints, seen.seen.scores, get_skeleton(seen.seen.skeleton))
    error = np.linalg.norm(pixels - exact.seen.keypoints, axis=-1)[:, [2, 3, 5, 6, 12, 13]]
    shown = scores[:, [2, 3, 5, 6, 12, 13]] > 0
    size = np.ptp(exact.seen.keypoints[..., 1], axis=1).mean()
    assert 0.005 < np.median(error[shown]) / size < 0.05


def test_fixed_view_chunks_are_independent(clips):
    all_of_them, some = fixed_views(clips, detector=True), fixed_views(clips[2:4], detector=True)
    same = next(view for view in all_of_them if view.name == some[0].name)
    np.testing.assert_array_equal(same.seen.keypoints, some[0].seen.keypoints)
