"""Joint sets, and the whole-body one."""

import numpy as np
import pytest

from pose.structures.skeletons import COCO17, H36M17, SKELETONS, WHOLEBODY133, get_skeleton, to_h36m17


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


# Mirror pairs of the face's 68 points as COCO-WholeBody numbers them; the points not named lie on the middle line.
FACE_PAIRS = (
    [(a, 16 - a) for a in range(8)]
    + [(a, 43 - a) for a in range(17, 22)]
    + [(31, 35), (32, 34)]
    + [(36, 45), (37, 44), (38, 43), (39, 42), (40, 47), (41, 46)]
    + [(48, 54), (49, 53), (50, 52), (55, 59), (56, 58), (60, 64), (61, 63), (65, 67)]
)
BODY, FACE, LEFT_HAND, RIGHT_HAND = slice(0, 17), 23, 91, 112


def test_wholebody_has_133_joints_in_published_order():
    names = WHOLEBODY133.names
    assert len(names) == len(set(names)) == 133
    assert names[BODY] == COCO17.names
    assert names[17:23] == (
        "left_big_toe",
        "left_small_toe",
        "left_heel",
        "right_big_toe",
        "right_small_toe",
        "right_heel",
    )
    assert names[FACE + 8] == "chin"
    assert (names[LEFT_HAND], names[RIGHT_HAND]) == ("left_hand_root", "right_hand_root")
    assert (names[LEFT_HAND + 4], names[RIGHT_HAND + 20]) == ("left_thumb_4", "right_pinky_finger_4")


def test_flip_pairs_are_the_published_ones():
    order = WHOLEBODY133.flip_order
    expected = dict.fromkeys(range(68))
    for a, b in FACE_PAIRS:
        expected[a], expected[b] = b, a
    assert [order[FACE + a] - FACE for a in range(68)] == [a if b is None else b for a, b in expected.items()]
    assert [order[LEFT_HAND + a] for a in range(21)] == [RIGHT_HAND + a for a in range(21)]
    assert [order[a] for a in range(17, 23)] == [20, 21, 22, 17, 18, 19]


def test_edges_form_a_forest_over_all_joints():
    edges = {frozenset(edge) for edge in WHOLEBODY133.edges}
    assert len(edges) == len(WHOLEBODY133.edges)
    assert {joint for edge in edges for joint in edge} == set(range(133))


def test_conversion_uses_body_joints_only(rng):
    xy = rng.normal(size=(5, 133, 2)).astype(np.float32)
    scores = rng.uniform(size=(5, 133)).astype(np.float32)
    whole = to_h36m17(xy, scores, get_skeleton("wholebody133"))
    body = to_h36m17(xy[:, BODY], scores[:, BODY], COCO17)
    for a, b in zip(whole, body, strict=True):
        np.testing.assert_array_equal(a, b)
    assert whole[1].shape == (5, len(H36M17))
