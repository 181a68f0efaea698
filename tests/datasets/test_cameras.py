"""Virtual cameras: proper rotations, people in front of them and mostly in the image, and people before a fixed one."""

import numpy as np
import pytest
from motion import waving_clip
from pose_datasets import filming
from pose_datasets.mocap import load_source

from benchmarks.common.views import MAX_PIECE_FRAMES, fixed_views
from pose.structures.camera import project
from pose.structures.skeletons import get_skeleton, to_h36m17


@pytest.fixture(scope="module")
def scene():
    """64 copies of a walk and cameras that film it: points, times, cameras."""
    clip = waving_clip()
    points = np.tile(clip.points[:240:3], (64, 1, 1, 1))
    times = np.tile(clip.times[:240:3], (64, 1))
    return points, times, filming.random_cameras(np.random.default_rng(3), points, times)


def test_people_are_in_front_of_the_camera_upright_and_not_mirrored(scene):
    """Of someone who faces the camera, the left hand is at the right; heads are above feet when the camera is level."""
    points, _, view = scene
    seen = view.to_camera(points)
    assert seen[..., 2].min() > 0.34
    level = np.abs(view.rotation[:, 0, 1, 1] + 1) < 0.05  # the camera's down is the world's
    assert level.sum() > 10
    assert (seen[level, 0, 10, 1] < seen[level, 0, 3, 1]).all()
    facing = seen[:, 0, 17, 2] < seen[:, 0, 18, 2] - 0.08  # the nose is nearer than the ears
    assert facing.sum() > 5
    assert (seen[facing & level, 0, 11, 0] > seen[facing & level, 0, 14, 0]).all()


def test_batch_projection_equals_project(scene):
    points, _, view = scene
    seen = view.to_camera(points)
    pixels = filming.project_batch(seen, view.intrinsics)
    for b in range(0, 64, 9):
        np.testing.assert_allclose(pixels[b], project(seen[b], view.intrinsics[b]), atol=2e-3)


def test_people_are_in_the_image_at_many_sizes(scene):
    points, _, view = scene
    pixels = filming.project_batch(view.to_camera(points), view.intrinsics)
    size = view.image_size[:, None, None]
    inside = ((pixels >= 0) & (pixels < size)).all(axis=-1)
    assert inside.mean() > 0.85
    height = np.ptp(pixels[:, 0, :, 1], axis=-1) / view.image_size[:, 1]
    assert np.percentile(height, 10) < 0.35
    assert np.percentile(height, 90) > 0.6


def test_cameras_vary_in_lens_and_position(scene):
    _, _, view = scene
    half = view.image_size.max(axis=1) / 2
    angle = np.degrees(2 * np.arctan(half / view.intrinsics[:, 0, 0]))
    assert angle.min() >= 34.9
    assert angle.max() <= 90.1
    assert np.ptp(angle) > 40
    assert {"landscape", "portrait", "square"} == {
        "landscape" if w > h else "portrait" if h > w else "square" for w, h in view.image_size
    }
    looking_down = np.degrees(np.arcsin(-view.rotation[:, 0, 2, 1]))
    assert looking_down.min() < -15
    assert looking_down.max() > 30


def test_cameras_at_chest_height_stand_around_the_people(scene):
    points, _, _ = scene
    view = filming.chest_height_cameras(np.random.default_rng(3), points)
    away = view.centre[:, 0] - points[:, :, 0].mean(axis=1)
    distance = np.linalg.norm(away, axis=-1)
    elevation = np.degrees(np.arcsin(away[:, 1] / distance))
    assert (np.abs(elevation) < 16).all()
    assert elevation.min() < -10
    assert elevation.max() > 10
    assert (distance > 2.9).all()
    assert len(np.unique(np.degrees(np.arctan2(away[:, 0], away[:, 2])) // 45)) == 8  # all sides
    np.testing.assert_array_equal(view.centre, view.centre[:, :1].repeat(view.centre.shape[1], axis=1))
    pixels = filming.project_batch(view.to_camera(points), view.intrinsics)
    assert ((pixels > 0) & (pixels < 2048)).all(axis=(1, 2, 3)).mean() > 0.8


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
