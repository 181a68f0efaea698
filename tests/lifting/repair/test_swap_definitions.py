"""The fast search for swapped limbs gives the answers of its definition."""

from dataclasses import replace

import numpy as np
import pytest
from swap_definitions import swapped_by_definition
from swapped_limbs import swap_limbs

from pose.lifting.repair.person import RULES
from pose.lifting.repair.swaps import LIMB_RULES, SwapFinder, body_pairs, limb_pairs, limb_rules
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import get_skeleton


def some_swapped(sequence, rng):
    """The sequence with swaps of all lengths, joints and whole frames that are not seen, and unequal steps."""
    swapped = np.zeros((len(sequence.times), 2), bool)
    for _ in range(8):
        begin = rng.integers(len(swapped))
        swapped[begin : begin + rng.integers(1, 50)] ^= [(True, False), (False, True), (True, True)][rng.integers(3)]
    sequence = swap_limbs(sequence, swapped)
    keypoints, scores = sequence.keypoints.copy(), sequence.scores.copy()
    away = rng.integers(len(scores))
    scores[away : away + rng.integers(1, 50)] = 0
    scores[rng.random(scores.shape) < 0.1] = 0
    keypoints[scores == 0] = np.nan
    times = np.cumsum(rng.uniform(0.5, 1.5, len(scores)) / 30)
    return replace(sequence, keypoints=keypoints, scores=scores, times=times)


def wandering(rng, skeleton):
    """Joints that go where they like."""
    joints = len(get_skeleton(skeleton))
    keypoints = rng.uniform(0, 300, (1, joints, 2)) + rng.normal(0, 5, (90, joints, 2)).cumsum(axis=0)
    return Sequence2D(
        keypoints.astype(np.float32), rng.random((90, joints)).astype(np.float32), np.arange(90) / 30,
        Camera.of((500, 500)), skeleton,
    )  # fmt: skip


@pytest.mark.parametrize("lookahead", [0.0, 0.3, LIMB_RULES.max_swap_s, np.inf])
@pytest.mark.parametrize("kind", ["limbs", "body"])
def test_swap_search_equals_its_definition(kind, lookahead, filmed, danced, rng):
    told = []
    for original in (danced, filmed[0], filmed[1], *(wandering(rng, name) for name in ("coco17", "blazepose33"))):
        sequence, skeleton = some_swapped(original, rng), get_skeleton(original.skeleton)
        limbs = list(limb_pairs(skeleton).values()) if kind == "limbs" else [body_pairs(skeleton)]
        rules = limb_rules(lookahead) if kind == "limbs" else RULES
        finder, found = SwapFinder(limbs, rules, lookahead), []
        for keypoints, scores, time in zip(sequence.keypoints, sequence.scores, sequence.times.tolist(), strict=True):
            finder.push(keypoints, scores, time)
            found += finder.take(time)
        found = np.array(found + finder.take(np.inf))
        np.testing.assert_array_equal(found, swapped_by_definition(sequence, limbs, rules, lookahead))
        told.append(found)
    told = np.concatenate(told)
    assert told.any(axis=0).all()
    assert not told.all(axis=0).any()
