"""A whole run: results in, the same people in the same frames out, and those between."""

import tracemalloc
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from walker import LENS, SIZE, filmed, standing, walking

from pose.structures.camera import Camera
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.world.clean import clean
from pose.world.ground import find_world
from pose.world.run import PlacedRun, doubtful_tracks
from pose.world.store import SeenPeople

CAMERA = Camera.of(SIZE, LENS)


def results_of(people):
    """people: id -> (lifted, seen, frames in which they are)."""
    count = max(len(lifted) for lifted, *_ in people.values())
    results = []
    for t in range(count):
        here = [(number, *one) for number, one in people.items() if t in one[2]]
        rows = [(number, lifted, seen) for number, lifted, seen, _ in here]

        def stack(values, shape):
            return np.stack(values) if values else np.zeros((0, *shape), np.float32)

        pixels = stack([seen.keypoints[t] for *_, seen in rows], (17, 2))
        boxes = np.concatenate([pixels.min(axis=1), pixels.max(axis=1)], axis=1) if rows else np.zeros((0, 4))
        ones = np.ones((len(rows), 17), np.float32)
        results.append(
            FrameResult(
                People(t, t / 30, np.array([n for n, *_ in rows], np.int64), boxes, ones[:, 0], pixels, ones),
                Poses3D(
                    stack([lifted.joints[t] for _, lifted, _ in rows], (17, 3)),
                    stack([lifted.root[t] for _, lifted, _ in rows], (3,)),
                    30 * ones,
                ),
            )
        )
    return results


@pytest.fixture
def placed():
    """PlacedRun, closed in the end."""
    with ExitStack() as stack:
        yield lambda results, **options: stack.enter_context(PlacedRun(results, H36M17, CAMERA, **options))


@pytest.fixture
def results():
    walk = filmed(walking(3.0), pitch=-8, turn=30, distance=8)[:2]
    stand = filmed(standing(3.0) + np.array([1.0, 0, 0]), pitch=-8, distance=8)[:2]
    return results_of({4: (*walk, {*range(30), *range(36, 90)}), 2: (*stand, set(range(10, 70)))})


def test_all_people_are_placed_and_gaps_are_filled(results, placed):
    run = placed(results)
    again = list(run)
    assert len(again) == len(results)
    for t, (before, after) in enumerate(zip(results, again, strict=True)):
        here = before.people.ids.tolist()
        assert after.people.ids.tolist()[: len(here)] == here
        gap = 30 <= t < 36
        assert set(after.people.ids.tolist()) - set(here) == ({4} if gap else set())
        assert after.placed.filled.tolist() == [False] * len(here) + [True] * gap
        np.testing.assert_allclose(
            run.world.place(after.poses.joints + after.poses.root[:, None]), after.placed.joints, atol=1e-4
        )
        if gap:
            assert after.people.scores[-1].max() == 0
            assert np.isfinite(after.people.boxes).all()
    assert run.filled == 6
    assert sorted(run.heights) == [2, 4]


def test_nan_poses_are_not_kept(results, placed):
    results[50].poses.joints[0] = np.nan
    results[51].poses.root[0] = np.inf
    again = list(placed(results))
    assert all(np.isfinite(result.placed.joints).all() for result in again)
    assert np.abs(again[51].poses.root[0] - again[49].poses.root[0]).max() < 0.3


def test_broken_tracks_become_one_person_unless_unwanted(placed):
    walk = filmed(walking(4.0), turn=90, distance=6)[:2]
    results = results_of({1: (*walk, {*range(50)}), 2: (*walk, {60, 61}), 4: (*walk, {*range(70, 120)})})
    run = placed(results)
    assert (run.joined, run.dropped) == ({4: 1}, {2})
    again = list(run)
    assert {number for result in again for number in result.people.ids.tolist()} == {1}
    assert [len(result.people) for result in (again[20], again[60], again[100])] == [1, 0, 1]
    apart = placed(results, join=False)
    assert sorted(apart.heights) == [1, 2, 4]
    assert {number for result in apart for number in result.people.ids.tolist()} == {1, 2, 4}


def test_streamed_world_equals_the_steps_at_once(results, placed):
    """From disk, one after another, as together in memory, to what single precision holds."""
    with SeenPeople(H36M17, CAMERA, None) as people:
        people.gather(results)
        world, cleaned = clean(people, people.frames)
    run = placed(results)
    np.testing.assert_allclose(run.world.rotation, world.rotation, atol=1e-6)
    assert run.world.floor == pytest.approx(world.floor, abs=1e-4)
    for number, one in cleaned.items():
        rows = [r.placed.joints[r.people.ids.tolist().index(number)] for r in run if number in r.people.ids]
        np.testing.assert_allclose(rows, one.placed, atol=1e-3)


class Again:
    """Results made for each iteration, so that only the measured code holds them."""

    def __init__(self, results, count):
        self._results, self._count = results, count

    def __iter__(self):
        for turn in range(self._count):
            for result in self._results:
                ids, time = result.people.ids + turn, result.time + 30 * turn
                yield replace(result, people=replace(result.people, ids=ids, time=time))


def test_memory_does_not_grow_with_the_number_of_people(placed, monkeypatch):
    """Three people one after another, then nine, each three seconds; few candidates, which take memory per person."""
    monkeypatch.setattr("pose.utils.row_file.MEMORY_BYTES", 0)
    monkeypatch.setattr("pose.world.scenes.find_world", partial(find_world, candidates=16))
    results = results_of({1: (*filmed(walking(3.0), turn=90, distance=12)[:2], set(range(90)))})

    def peak(count):
        tracemalloc.start()
        found = sum(len(result.people) for result in placed(Again(results, count), join=False))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found == 90 * count
        return most

    placed(results)  # what is made once
    assert peak(9) < 1.3 * peak(3)


def test_false_frames_of_a_track_are_removed(placed):
    walk = filmed(walking(6.0), pitch=-8, turn=30, distance=8)[:2]
    ghost = filmed(standing(6.0) + np.array([1.0, 0, 0]), pitch=-8, distance=8)[:2]
    run = placed(
        results_of({1: (*walk, set(range(180))), 2: (*ghost, {30, 60, 61, *range(120, 170)}), 3: (*ghost, {75})})
    )
    again = list(run)
    there = {t for t, result in enumerate(again) if 2 in result.people.ids}
    assert there == set(range(120, 170))
    assert run.dropped == {3}
    assert run.left_out == 4
    assert run.doubtful == set()
    for result in again:
        assert len(result.people) == len(result.poses) == len(result.placed.filled)
        assert 3 not in result.people.ids


def test_doubtful_tracks_are_marked_in_every_frame(placed):
    walk = filmed(walking(3.0), pitch=-8, turn=30, distance=8)[:2]
    brief = filmed(standing(3.0) + np.array([1.0, 0, 0]), pitch=-8, distance=8)[:2]
    run = placed(results_of({1: (*walk, set(range(90))), 2: (*brief, set(range(40, 52)))}))
    assert run.doubtful == {2}
    for result in run:
        np.testing.assert_array_equal(result.placed.doubtful, result.people.ids == 2)


def test_a_second_track_of_one_body_is_doubtful_if_it_jitters(placed):
    """As of a detector that finds a third person, for a second, over one of two."""
    walk = filmed(walking(4.0), pitch=-8, turn=30, distance=8)[:2]
    lifted, seen = walk
    height = np.ptp(seen.keypoints[..., 1], axis=1).mean()
    jumps = np.random.default_rng(3).normal(0, 0.05 * height, seen.keypoints.shape).astype(np.float32)
    ghost = lifted, replace(seen, keypoints=seen.keypoints + jumps)
    for second, doubtful in ((ghost, {2}), (walk, set())):
        run = placed(results_of({1: (*walk, set(range(120))), 2: (*second, set(range(40, 66)))}))
        assert run.doubtful == doubtful


def test_doubtful_tracks_are_marked_without_a_world():
    walk = filmed(walking(3.0), pitch=-8, turn=30, distance=8)[:2]
    brief = filmed(standing(3.0) + np.array([1.0, 0, 0]), pitch=-8, distance=8)[:2]
    results = results_of({1: (*walk, set(range(90))), 2: (*brief, {0})})
    assert doubtful_tracks(results, H36M17, CAMERA) == {2}
    assert doubtful_tracks([], H36M17, CAMERA) == set()
