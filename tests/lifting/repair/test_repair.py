"""Swapped limbs, outliers and low scores: undone or masked, nothing made up, whole or frame by frame."""

from dataclasses import replace

import numpy as np
import pytest
from swap_definitions import swapped_by_definition
from swapped_limbs import swap_limbs

from pose.lifting.config import LifterConfig
from pose.lifting.offline import OfflineLifter
from pose.lifting.predict import Lifter
from pose.lifting.repair.person import FULL_LOOKAHEAD_S, MIN_SCORE, RULES, PersonRepair, repair, with_lifted_sides
from pose.lifting.repair.swaps import LIMB_RULES, SwapFinder, body_pairs, limb_pairs, limb_rules
from pose.lifting.stream import StreamLifter
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import BLAZEPOSE33, SKELETONS, get_skeleton
from pose.structures.types import People


def random_swaps(rng, times, rate=0.05, seconds=0.12):
    """(T, 2): bursts of about `seconds`; a third of the events swap legs and arms together."""
    swapped = np.zeros((len(times), 2), bool)
    for _ in range(rng.poisson(rate / seconds * 1.5 * (times[-1] - times[0]))):
        start = rng.uniform(times[0], times[-1])
        during = (times >= start) & (times < start + max(rng.exponential(seconds), 1 / 30))
        swapped[during] ^= np.array([[True, False], [False, True], [True, True]])[rng.integers(3)]
    return swapped


def found_swaps(sequence, lookahead=np.inf):
    limbs = list(limb_pairs(get_skeleton(sequence.skeleton)).values())
    finder, found = SwapFinder(limbs, limb_rules(lookahead), lookahead), []
    for keypoints, scores, time in zip(sequence.keypoints, sequence.scores, sequence.times, strict=True):
        finder.push(keypoints, scores, time)
        found += finder.take(time)
    return np.array(found + finder.take(np.inf))


def rates(sequences, rng, lookahead=np.inf):
    """Share of swapped frames that are undone and of others that are swapped wrongly, for legs and arms: (2, 2)."""
    swapped = [random_swaps(rng, sequence.times) for sequence in sequences]
    found = [found_swaps(swap_limbs(s, w), lookahead) for s, w in zip(sequences, swapped, strict=True)]
    swapped, found = np.concatenate(swapped), np.concatenate(found)
    assert swapped.sum(axis=0).min() > 20
    return (found & swapped).sum(axis=0) / swapped.sum(axis=0), (found & ~swapped).sum(axis=0) / (~swapped).sum(axis=0)


@pytest.mark.parametrize("lookahead", [np.inf, LIMB_RULES.max_swap_s])
def test_swaps_of_recorded_people_are_undone(filmed, rng, lookahead):
    undone, false = rates(filmed, rng, lookahead)
    assert undone.min() >= 0.9
    assert false.max() < 0.005


def test_swaps_of_a_real_clip_are_undone(danced, rng):
    undone, false = rates([danced] * 8, rng)
    assert undone.min() >= 0.9
    assert false.max() < 0.005


def test_repair_restores_exact_coordinates(danced):
    swapped = np.zeros((120, 2), bool)
    swapped[40:44, 0] = swapped[70:73] = True
    repaired = repair(swap_limbs(danced, swapped))
    seen = repaired.scores > 0
    limbs = np.concatenate(list(limb_pairs(BLAZEPOSE33).values())).ravel()
    np.testing.assert_array_equal(repaired.keypoints[:, limbs], danced.keypoints[:, limbs])
    np.testing.assert_array_equal(repaired.scores[seen], danced.scores[seen])
    assert seen.mean() > 0.98 * (danced.scores >= MIN_SCORE).mean()


@pytest.mark.parametrize("lookahead", [np.inf, 0.0])
def test_late_track_is_repaired_independently(danced, lookahead, rng):
    """Frames in which no person is seen say nothing about the size of the body."""
    early = swap_limbs(danced, random_swaps(rng, danced.times))
    empty = 15
    late = Sequence2D(
        np.concatenate([np.zeros((empty, 33, 2), np.float32), early.keypoints]),
        np.concatenate([np.zeros((empty, 33), np.float32), early.scores]),
        np.arange(empty + len(early)) / 30, early.camera, early.skeleton,
    )  # fmt: skip
    found = found_swaps(late, lookahead)
    assert not found[:empty].any()
    np.testing.assert_array_equal(found[empty:], found_swaps(early, lookahead))


def test_persistent_turn_is_not_a_swap(danced):
    """What seems swapped for good is how the person stands; a short swap after it is still found."""
    swapped = np.zeros((120, 2), bool)
    swapped[30:] = True
    found = found_swaps(swap_limbs(danced, swapped))
    assert not found[:80].any()
    swapped[100:103] = False
    found = found_swaps(swap_limbs(danced, swapped))
    assert found[100:103].all()
    assert found.sum() == 6


@pytest.mark.parametrize("skeleton", SKELETONS.values(), ids=lambda s: s.name)
def test_limbs_are_pairs_of_left_and_right(skeleton):
    pairs = limb_pairs(skeleton)
    assert list(pairs) == ["legs", "arms"]
    flip = np.array(skeleton.flip_order)
    for found in pairs.values():
        assert len(found) >= 3
        np.testing.assert_array_equal(flip[found[:, 0]], found[:, 1])
        assert all(skeleton.side(left) == "left" for left in found[:, 0])


def test_outliers_lose_their_score(danced, rng):
    xy = danced.keypoints.copy()
    far = np.zeros(danced.scores.shape, bool)
    far[rng.integers(8, 112, 40), rng.integers(0, 33, 40)] = True
    far &= danced.scores > 0.5
    xy[far] += rng.choice([-1, 1], (far.sum(), 2)) * 0.2 * 350
    repaired = repair(Sequence2D(xy, danced.scores, danced.times, danced.camera, danced.skeleton))
    masked = (repaired.scores == 0) & (danced.scores >= MIN_SCORE)
    assert (masked & far).sum() / far.sum() > 0.9
    assert (masked & ~far).sum() / (~far).sum() < 0.01


@pytest.mark.parametrize("rate", [24, 30, 60])
def test_steady_motion_at_any_frame_rate_is_not_an_outlier(rate, rng):
    times = np.cumsum(rng.uniform(0.5, 1.5, 3 * rate) / rate)
    body = rng.uniform(0, 400, (1, 17, 2))
    xy = (body + 300 * times[:, None, None] + rng.normal(0, 2, (3 * rate, 17, 2))).astype(np.float32)
    sequence = Sequence2D(xy, np.ones((3 * rate, 17), np.float32), times, Camera.of((2000, 2000)), "coco17")
    assert (repair(sequence).scores == 1).all()


@pytest.mark.parametrize("length", [0, 1, 2])
def test_short_sequences_are_unchanged(length):
    sequence = Sequence2D(
        np.ones((length, 17, 2), np.float32), np.ones((length, 17), np.float32), np.arange(length) / 30,
        Camera.of((9, 9)), "coco17",
    )  # fmt: skip
    np.testing.assert_array_equal(repair(sequence).keypoints, sequence.keypoints)


class WindowNotes(Lifter):
    """An offline lifter that notes the windows it sees."""

    name, sha256, path, streaming = "notes", "", None, False
    step = None
    windows = LifterConfig().windows

    def __init__(self):
        self.noted = []

    def forward(self, windows, lookahead=0):
        return [np.zeros((len(window), 71), np.float32) for window in windows]

    def forward_mirrored(self, windows):
        self.noted += windows
        return self.forward(windows)

    def seen(self):
        """(time, keypoints, scores) of everything it saw."""
        return [frame for w in self.noted for frame in zip(w.times, w.keypoints, w.scores, strict=True)]


class StreamNotes:
    """A stream that notes what it sees of each person and answers at once."""

    skeleton, lookahead = BLAZEPOSE33, 0

    def __init__(self):
        self.frames = []

    def new_person(self):
        return object()

    def step(self, people, keypoints, scores, time):
        self.frames += [(time, *rows) for rows in zip(keypoints, scores, strict=True) if rows[1].any()]
        return list(np.zeros((len(people), 71), np.float32))

    def seen(self):
        return self.frames


def stage_of(kind):
    """A stage that repairs, and what notes what its network sees."""
    if kind == "offline":
        notes = WindowNotes()
        return OfflineLifter(notes, BLAZEPOSE33, Camera.of((384, 496)), repair=True), notes
    notes = StreamNotes()
    return StreamLifter(notes, repair=True), notes


def people_of(index, time, rows, sequence):
    """The frame `row` of the sequence for each id in `rows`: {id: row}."""
    ids, at = np.array(list(rows), np.int64), list(rows.values())
    return People(
        index, time, ids, np.zeros((len(ids), 4), np.float32), np.ones(len(ids), np.float32),
        sequence.keypoints[at], sequence.scores[at],
    )  # fmt: skip


@pytest.mark.parametrize(("kind", "lookahead", "most"), [("stream", 0.0, 0), ("offline", FULL_LOOKAHEAD_S, 81 + 218)])
def test_repaired_input_returns_original_keypoints(danced, kind, lookahead, most):
    swapped = np.zeros((120, 2), bool)
    swapped[50:53] = True
    bad = swap_limbs(danced, swapped)
    frames = []
    for i in range(110):
        rows = {3: i} | ({4: i + 5} if 20 <= i < 90 else {})  # one comes later and leaves earlier
        frames.append(people_of(i, i / 30, rows if i != 60 else {}, bad))
    stage, notes = stage_of(kind)
    results, waiting = [], 0
    for people in frames:
        results += stage.push(people)
        waiting = max(waiting, people.index + 1 - len(results))
    results += stage.flush()
    assert waiting <= most
    assert [result.index for result in results] == list(range(110))
    assert all(result.people is people for result, people in zip(results, frames, strict=True))
    expected = {}
    for number in (3, 4):
        person, times = PersonRepair(BLAZEPOSE33, lookahead), []
        for people in (people for people in frames if number in people.ids):
            row = people.ids.tolist().index(number)
            person.push(people.keypoints[row], people.scores[row], people.time)
            times.append(people.time)
        for time, repaired in zip(times, person.take(np.inf), strict=True):
            expected.setdefault(time, []).append(repaired)
    for time, keypoints, scores in notes.seen():
        assert any(
            np.array_equal(keypoints, want.keypoints) and np.array_equal(scores > 0, want.scores > 0)
            for want in expected[time]
        ), time
    assert len({(time, xy.tobytes()) for time, xy, _ in notes.seen()}) == sum(map(len, expected.values()))


@pytest.mark.parametrize("kind", ["stream", "offline"])
def test_results_list_swapped_limbs(danced, kind):
    swapped = np.zeros((120, 2), bool)
    swapped[40:44, 0] = swapped[70:73, 1] = True
    seen = swap_limbs(danced, swapped)
    stage, notes = stage_of(kind)
    results = []
    for i, time in enumerate(seen.times.tolist()):
        results += stage.push(people_of(i, time, {1: i}, seen))
    results += stage.flush()
    np.testing.assert_array_equal([result.poses.swapped[0] for result in results], swapped)
    lifted = {time: keypoints for time, keypoints, _ in notes.seen()}
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result.people.keypoints[0], seen.keypoints[i])
        sides, _ = with_lifted_sides(result, BLAZEPOSE33)
        np.testing.assert_array_equal(sides[0], lifted[result.time])


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
