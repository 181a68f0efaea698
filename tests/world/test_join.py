"""Broken tracks: joined where place, pose and size agree, and only there."""

from dataclasses import replace

import numpy as np
import pytest
from walker import seen_person, standing, walking

from pose.world.clean import fill_gaps, stretches
from pose.world.depth import estimate_pelvis, smooth_depths
from pose.world.tracks import find_joins

WALK = seen_person(walking(4.0), turn=90, distance=6)  # across the view


def part(person, frames):
    return replace(person, **{name: getattr(person, name)[frames] for name in person.__slots__})


def broken(first=slice(0, 50), second=slice(80, 120), **changes):
    return {3: part(WALK, first), 5: replace(part(WALK, second), **changes)}


def test_tracks_around_a_short_occlusion_are_joined():
    assert find_joins(broken(), [0.0]) == {5: 3}


def test_nothing_is_joined_across_a_cut():
    assert find_joins(broken(), [0.0, 2.0]) == {}


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_distant_tracks_are_not_joined(axis):
    there = WALK.root[80:] + 1.5 * np.eye(3)[axis]
    assert find_joins(broken(root=there), [0.0]) == {}


def test_tracks_of_different_size_are_not_joined():
    assert find_joins(broken(joints=0.8 * WALK.joints[80:]), [0.0]) == {}


def test_simultaneous_tracks_are_not_joined():
    assert find_joins(broken(slice(0, 90), slice(80, 120)), [0.0]) == {}


def test_tracks_after_a_long_gap_are_not_joined():
    still = seen_person(standing(8.0))
    pieces = {1: part(still, slice(0, 30)), 2: part(still, slice(200, 240))}
    assert find_joins(pieces, [0.0]) == {}


def test_all_tracks_are_joined_in_one_assignment():
    """The nearest pair alone, of the second and the third track, would leave the two others single."""
    still = seen_person(standing(4.0))
    places = {1: (0.0, slice(0, 50)), 2: (0.76, slice(0, 50)), 3: (0.4, slice(80, 120)), 4: (1.16, slice(80, 120))}
    people = {
        number: part(replace(still, root=still.root + np.array([across, 0, 0])), frames)
        for number, (across, frames) in places.items()
    }
    assert find_joins(people, [0.0]) == {3: 1, 4: 2}


@pytest.fixture
def walker():
    return seen_person(walking(4.0), turn=20, distance=8)


def placed(person):
    seen = estimate_pelvis(person)
    depth, variance = smooth_depths(seen.depth, seen.variance, person.times)
    return seen.positions(depth), variance


def test_visible_body_keeps_its_position(walker):
    root, _ = placed(walker)
    assert np.abs(root - walker.root).max() < 0.06
    assert np.abs(root - walker.root).mean() < 0.01


def test_single_visible_joint_keeps_a_plausible_distance(walker):
    """Frames in which only a wrist is seen, and the lifter says 300 m."""
    scores, root = walker.scores.copy(), walker.root.copy()
    scores[40:70] = 0
    scores[40:70, 13] = 1
    root[40:70] *= 60
    person = replace(walker, scores=scores, rays=np.where(scores[..., None] > 0, walker.rays, 0), root=root)
    found, variance = placed(person)
    assert np.abs(found - walker.root).max() < 0.5
    assert variance[55] > 3 * variance[10]


def test_unseen_body_keeps_the_lifted_position(walker):
    person = replace(walker, scores=np.zeros_like(walker.scores), rays=np.zeros_like(walker.rays))
    found, variance = placed(person)
    np.testing.assert_allclose(found, walker.root, atol=1e-6)
    assert np.isinf(variance).all()


def test_depth_noise_is_removed_and_walking_kept(walker, rng):
    noisy = replace(walker, root=walker.root * (1 + 0.05 * rng.standard_normal((len(walker), 1))))
    found, _ = placed(noisy)
    before, after = (np.abs(root[:, 2] - walker.root[:, 2]).mean() for root in (noisy.root, found))
    assert after < before / 2
    assert np.ptp(found[:, 2]) == pytest.approx(np.ptp(walker.root[:, 2]), rel=0.1)


def test_sudden_motion_is_kept(rng):
    """Up and down, seen in the image: depth has no part in it."""
    world = standing(3.0)
    t = np.arange(len(world)) / 30
    world[..., 1] += (0.4 * np.clip(np.sin(2 * np.pi * (t - 1)), 0, 1) * ((t > 1) & (t < 1.5)))[:, None]
    person = seen_person(world)
    root, _ = placed(person)
    assert np.abs(root[:, 1] - person.root[:, 1]).max() < 0.02


def test_gaps_are_filled_up_to_a_limit(walker):
    frames = walker.times
    kept = np.ones(len(frames), bool)
    kept[20:25] = kept[60:100] = False
    person = replace(walker, **{name: getattr(walker, name)[kept] for name in walker.__slots__})
    filled, mask = fill_gaps(person, frames)
    np.testing.assert_allclose(filled.times[mask], frames[20:25])
    assert (filled.scores[mask] == 0).all()
    assert (filled.scores[~mask] > 0).all()
    np.testing.assert_array_equal(filled.joints[~mask], person.joints)
    assert np.abs(filled.root[mask] - walker.root[20:25]).max() < 0.05
    assert [part.stop - part.start for part in stretches(filled.times)] == [60, 20]
