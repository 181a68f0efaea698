"""A whole run: results in, the same people in the same frames out, and those between."""

from dataclasses import replace

import numpy as np
import pytest
from walker import ANKLES, LENS, SIZE, filmed, standing, walking

from pose.camera import Camera
from pose.skeletons import H36M17
from pose.types import FrameResult, People, Poses3D
from pose.world.run import PlacedRun

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
def results():
    walk = filmed(walking(3.0), pitch=-8, turn=30, distance=8)[:2]
    stand = filmed(standing(3.0) + np.array([1.0, 0, 0]), pitch=-8, distance=8)[:2]
    return results_of({4: (*walk, {*range(30), *range(36, 90)}), 2: (*stand, set(range(10, 70)))})


def test_everybody_is_placed_and_gaps_are_filled(results):
    run = PlacedRun(results, H36M17, CAMERA)
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


def test_it_can_be_read_twice(results):
    run = PlacedRun(results, H36M17, CAMERA)
    for one, other in zip(run, run, strict=True):
        np.testing.assert_array_equal(one.placed.joints, other.placed.joints)


def test_feet_are_on_the_floor(results):
    heights = np.concatenate([r.placed.joints[:, ANKLES, 1].min(axis=1) for r in PlacedRun(results, H36M17, CAMERA)])
    assert np.abs(np.median(heights) - 0.08) < 0.03


def test_what_is_not_a_number_is_not_kept(results):
    results[50].poses.joints[0] = np.nan
    results[51].poses.root[0] = np.inf
    again = list(PlacedRun(results, H36M17, CAMERA))
    assert all(np.isfinite(result.placed.joints).all() for result in again)
    assert np.abs(again[51].poses.root[0] - again[49].poses.root[0]).max() < 0.3


def test_an_empty_run():
    results = results_of({1: (*filmed(standing(1.0))[:2], set())})
    run = PlacedRun(results, H36M17, CAMERA)
    assert run.world.found_by == "unknown"
    assert [len(result.people) for result in run] == [0] * 30


def test_broken_tracks_become_one_person_unless_unwanted():
    walk = filmed(walking(4.0), turn=90, distance=6)[:2]
    results = results_of({1: (*walk, {*range(50)}), 2: (*walk, {60, 61}), 4: (*walk, {*range(70, 120)})})
    run = PlacedRun(results, H36M17, CAMERA)
    assert (run.joined, run.dropped) == ({4: 1}, {2})
    again = list(run)
    assert {number for result in again for number in result.people.ids.tolist()} == {1}
    assert [len(result.people) for result in (again[20], again[60], again[100])] == [1, 0, 1]
    apart = PlacedRun(results, H36M17, CAMERA, join=False)
    assert sorted(apart.people) == [1, 2, 4]
    assert {number for result in apart for number in result.people.ids.tolist()} == {1, 2, 4}


def test_a_cut_keeps_people_apart():
    walk = filmed(walking(4.0), turn=90, distance=6)[:2]
    results = results_of({1: (*walk, {*range(50)}), 4: (*walk, {*range(51, 120)})})
    results[51] = replace(results[51], people=replace(results[51].people, cut=True))
    assert PlacedRun(results, H36M17, CAMERA).joined == {}
