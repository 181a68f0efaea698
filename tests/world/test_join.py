"""Broken tracks: joined where place, pose and size agree, and only there."""

from dataclasses import replace

import numpy as np
import pytest
from walker import seen_person, standing, walking

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
