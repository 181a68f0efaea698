"""A front taken for a back: whole bodies swapped for seconds, undone; who turns is believed."""

from dataclasses import replace

import numpy as np
import pytest
from swapped_limbs import film, standing, swap_limbs, swapped_by_repair

from pose.lifting.repair.person import FULL_LOOKAHEAD_S, StreamBodySwaps, face_agreement
from pose.lifting.repair.swaps import BODY_RULES, MAX_JOINT_SWAP_S
from pose.structures.skeletons import BLAZEPOSE33, H36M17

FACE = [BLAZEPOSE33.index(name) for name in ("nose", "left_eye", "right_eye")]
EARS = [BLAZEPOSE33.index(name) for name in ("left_ear", "right_ear")]


def turned(rng, times):
    """(T, 2): one swap of the whole body for 1.2 to 5 s, where the sequence is long enough for one."""
    swapped = np.zeros((len(times), 2), bool)
    longest = min(BODY_RULES.max_swap_s, times[-1] - times[0] - 2.4)
    if longest > 1.2:
        lasts = rng.uniform(1.2, longest)
        start = rng.uniform(times[0] + 1.2, times[-1] - 1.2 - lasts)
        swapped[(times >= start) & (times < start + lasts)] = True
    return swapped


def turned_and_found(sequences, rng, lookahead):
    """(T, 2) each, of all sequences: which limbs were swapped, and which repair swaps."""
    swapped = [turned(rng, sequence.times) for sequence in sequences]
    found = [swapped_by_repair(swap_limbs(s, w), lookahead) for s, w in zip(sequences, swapped, strict=True)]
    return np.concatenate(swapped), np.concatenate(found)


@pytest.mark.parametrize("lookahead", [np.inf, FULL_LOOKAHEAD_S])
def test_front_back_swap_is_undone(filmed, rng, lookahead):
    swapped, found = turned_and_found(filmed, rng, lookahead)
    assert swapped.mean() > 0.15
    assert (found & swapped).sum() / swapped.sum() >= 0.9
    assert (found & ~swapped).sum() / (~swapped).sum() < 0.005


def test_front_back_swap_of_a_real_clip_is_undone(danced):
    swapped = np.zeros((120, 2), bool)
    swapped[35:85] = True
    np.testing.assert_array_equal(swapped_by_repair(swap_limbs(danced, swapped), FULL_LOOKAHEAD_S), swapped)


@pytest.mark.parametrize(("turns", "undone"), [(False, True), (True, False)])
def test_face_visibility_indicates_the_facing_direction(danced, turns, undone):
    """The dancer faces the camera. Where the sides change and the face goes as well, nothing was mistaken."""
    swapped = np.zeros((120, 2), bool)
    swapped[35:85] = True
    scores = danced.scores.copy()
    scores[:, EARS], scores[:, FACE] = 0.5, 1.0
    scores[35:85, FACE] = 0.2 if turns else 1.0
    found = swapped_by_repair(swap_limbs(replace(danced, scores=scores), swapped), FULL_LOOKAHEAD_S)
    np.testing.assert_array_equal(found, swapped & undone)


def test_face_direction_confirms_or_contradicts_sides(danced):
    scores = danced.scores.copy()
    scores[:, EARS], scores[:, FACE] = 0.5, 0.7
    seen = replace(danced, scores=scores)
    front = face_agreement(seen.keypoints, seen.scores, BLAZEPOSE33)
    assert 0.15 < front < 0.21
    other = swap_limbs(seen, np.ones((120, 2), bool))
    assert face_agreement(other.keypoints, other.scores, BLAZEPOSE33) == pytest.approx(-front)
    assert face_agreement(7 * seen.keypoints + 300, seen.scores, BLAZEPOSE33) == pytest.approx(front)
    scores[:, FACE] = 0.3
    assert face_agreement(seen.keypoints, scores, BLAZEPOSE33) == pytest.approx(-front)


def test_invisible_face_is_no_evidence(danced):
    scores, keypoints = danced.scores.copy(), danced.keypoints.copy()
    scores[:, EARS], scores[:, FACE] = 0.5, 1.0
    for hidden in ("left_hip", "right_shoulder"):
        scores[60:, BLAZEPOSE33.index(hidden)] = 0
        keypoints[60:, BLAZEPOSE33.index(hidden)] = np.nan
    assert face_agreement(keypoints[60:], scores[60:], BLAZEPOSE33) == 0
    half = face_agreement(keypoints, scores, BLAZEPOSE33)
    assert half == pytest.approx(face_agreement(keypoints[:60], scores[:60], BLAZEPOSE33) / 2)
    assert face_agreement(keypoints[:, :17], scores[:, :17], H36M17) == 0


@pytest.mark.parametrize("seen", [slice(30, None), slice(None, 70), slice(50, None)])
def test_swap_without_an_end_is_kept(danced, seen):
    """Which side of one sudden change is wrong is unknown."""
    swapped = np.zeros((120, 2), bool)
    swapped[seen] = True
    assert not swapped_by_repair(swap_limbs(danced, swapped), FULL_LOOKAHEAD_S)[:, 0].any()


@pytest.mark.parametrize("seconds", [0.4, 1.0])
def test_turning_person_is_not_swapped(seconds):
    """A body turns by half, and some seconds later by half again."""
    times = np.arange(200) / 30
    angle = np.pi * (np.clip((times - 1.5) / seconds, 0, 1) + np.clip((times - 4) / seconds, 0, 1))
    sequence = standing(np.cos(angle)[:, None].repeat(2, axis=1), times)
    assert not swapped_by_repair(sequence, FULL_LOOKAHEAD_S).any()


@pytest.mark.parametrize(("face", "undone"), [(1.0, True), (0.5, False), (0.1, False)])
def test_live_body_is_swapped_when_the_face_contradicts(danced, face, undone):
    """Over all frames the face speaks for the sides as they were first, says nothing, or speaks against them."""
    swapped = np.zeros((120, 2), bool)
    swapped[35:85] = True
    scores = danced.scores.copy()
    scores[:, EARS], scores[:, FACE] = 0.5, face
    seen = swap_limbs(replace(danced, scores=scores), swapped)
    body = StreamBodySwaps(BLAZEPOSE33)
    found = [body.swapped(*frame) for frame in zip(seen.keypoints, seen.scores, seen.times, strict=True)]
    np.testing.assert_array_equal(found, swapped[:, 0] & undone)


def test_live_swap_lasts_while_the_face_contradicts(danced):
    """Limbs alone would be swapped for a second, and for another one when all is over."""
    swapped = np.zeros((120, 2), bool)
    swapped[35:85] = True
    scores = danced.scores.copy()
    scores[:, EARS], scores[:, FACE] = 0.5, 1.0
    found = swapped_by_repair(swap_limbs(replace(danced, scores=scores), swapped), 0.0)
    np.testing.assert_array_equal(found, swapped)


@pytest.mark.parametrize("end", [75, 84])
def test_live_swap_without_face_evidence_is_brief(danced, end):
    """A stream believes what lasts, and is right again where it ends. One frame with a visible face is not enough."""
    swapped = np.zeros((120, 2), bool)
    swapped[25:end] = True
    scores = danced.scores.copy()
    scores[10, EARS] = scores[10, FACE].mean() - 0.3
    found = swapped_by_repair(swap_limbs(replace(danced, scores=scores), swapped), 0.0)
    moment = 25 + round(30 * MAX_JOINT_SWAP_S)
    assert found[25 : moment - 1].all()
    assert not found[:25].any()
    assert not found[moment + 2 :].all(axis=1).any()


def test_live_correct_frames_around_a_swap_are_unchanged(recorded, rng):
    """At 10 frames a second one end is easily overlooked, and the other is taken for it, for a moment at most."""
    swapped, found = turned_and_found(film(recorded, 10) * 3, rng, 0.0)
    assert swapped.mean() > 0.15
    assert (found & ~swapped).all(axis=1).sum() / (~swapped).all(axis=1).sum() < 0.02


@pytest.mark.parametrize("seconds", [1.5, 4.0])
@pytest.mark.parametrize("limb", [0, 1])
def test_single_limb_swap_is_not_a_body_swap(limb, seconds):
    """The other one stays where it is, and nothing is done to it."""
    times = np.arange(300) / 30
    across = np.ones((300, 2))
    across[:, 1] = 0.3 if limb == 0 else 3.0
    across[(times >= 3) & (times < 3 + seconds), limb] *= -1
    assert not swapped_by_repair(standing(across, times), FULL_LOOKAHEAD_S)[:, 1 - limb].any()
