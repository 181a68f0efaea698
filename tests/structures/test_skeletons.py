import numpy as np
import pytest

from pose.structures.skeletons import COCO17, H36M17, SKELETONS, get_skeleton, to_h36m17


@pytest.mark.parametrize("skeleton", SKELETONS.values(), ids=SKELETONS)
def test_flip_is_an_involution_that_swaps_sides(skeleton):
    order = np.array(skeleton.flip_order)
    assert (order[order] == np.arange(len(skeleton))).all()
    opposite = {"left": "right", "right": "left", "centre": "centre"}
    assert [skeleton.side(j) for j in order] == [opposite[skeleton.side(j)] for j in range(len(skeleton))]


@pytest.mark.parametrize("skeleton", SKELETONS.values(), ids=SKELETONS)
def test_conversion_keeps_named_joints_and_averages_the_rest(skeleton, rng):
    xy = rng.normal(size=(4, len(skeleton), 2)).astype(np.float32)
    scores = rng.uniform(size=(4, len(skeleton))).astype(np.float32)
    out, out_scores = to_h36m17(xy, scores, skeleton)
    for joint in ("left_wrist", "right_knee", "left_hip"):
        np.testing.assert_array_equal(out[:, H36M17.index(joint)], xy[:, skeleton.index(joint)])
    if skeleton.derived:
        hips = [skeleton.index("left_hip"), skeleton.index("right_hip")]
        np.testing.assert_allclose(out[:, 0], xy[:, hips].mean(axis=1), rtol=1e-6)
        np.testing.assert_array_equal(out_scores[:, 0], scores[:, hips].min(axis=1))


def test_derived_joint_of_an_unseen_source_is_unseen():
    scores = np.ones((1, 17), np.float32)
    scores[0, COCO17.index("left_hip")] = 0
    _, out = to_h36m17(np.zeros((1, 17, 2), np.float32), scores, COCO17)
    assert out[0, H36M17.index("pelvis")] == 0
    assert out[0, H36M17.index("spine")] == 0
    assert out[0, H36M17.index("thorax")] == 1


def test_invalid_input_is_named():
    with pytest.raises(ValueError, match="coco17 has 17 joints, got 5"):
        to_h36m17(np.zeros((2, 5, 2), np.float32), np.zeros((2, 5), np.float32), COCO17)
    with pytest.raises(ValueError, match="known: h36m17"):
        get_skeleton("nope")
