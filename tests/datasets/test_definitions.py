"""Joint definitions: ours, a detector's, and those of other data sets."""

import numpy as np
from motion import STANDING, waving_clip
from pose_datasets import filming
from pose_datasets.bodies import pelvis_frame, to_bones

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
