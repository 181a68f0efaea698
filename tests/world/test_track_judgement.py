"""Which frames of a track show a person, and which tracks are doubtful."""

from dataclasses import replace

import numpy as np
import pytest
from walker import seen_person, walking

from pose.world.tracks import SceneTimes, is_doubtful, jitters, overlaps_longer, person_frames

WALK = seen_person(walking(8.0), turn=90, distance=8)
SCENES = SceneTimes.of(WALK.times)


def part(*frames, person=WALK, shown=1.0):
    """The person in some ranges of frames, with this share of the joints seen."""
    rows = np.concatenate([np.arange(first, after) for first, after in frames])
    one = replace(person, **{name: getattr(person, name)[rows] for name in person.__slots__})
    scores = one.scores.copy()
    scores[:, round(17 * shown) :] = 0
    return replace(one, scores=scores)


@pytest.mark.parametrize("shown", [0.5, 1.0])
def test_isolated_fragments_are_not_a_person(shown):
    ghost = part((60, 61), (80, 86), shown=shown)
    assert not person_frames(ghost, SCENES).any()


def test_only_the_false_part_of_a_track_is_removed():
    track = part((60, 61), (80, 82), (120, 200))
    np.testing.assert_array_equal(person_frames(track, SCENES), track.times >= WALK.times[120])


def test_person_seen_between_occlusions_is_kept():
    track = part((40, 90), (98, 103), (111, 160))
    assert person_frames(track, SCENES).all()


def test_intermittent_track_is_kept():
    track = part(*[(first, first + 2) for first in range(40, 160, 4)])
    assert person_frames(track, SCENES).all()


@pytest.mark.parametrize("frames", [(0, 4), (236, 240)])
def test_track_at_the_clip_ends_is_kept_as_doubtful(frames):
    track = part(frames)
    assert person_frames(track, SCENES).all()
    assert is_doubtful(track, SCENES)


def test_judgement_does_not_depend_on_frame_rate():
    times = WALK.times
    for every in (1, 3, 6):  # down to 5 frames a second
        scenes = SceneTimes.of(times[::every])
        rows = np.zeros(len(times), bool)
        rows[60:210] = True
        rows[24:28] = True
        rows &= np.arange(len(times)) % every == 0
        track = replace(WALK, **{name: getattr(WALK, name)[rows] for name in WALK.__slots__})
        np.testing.assert_array_equal(person_frames(track, scenes), track.times >= times[60])


def test_clearly_visible_person_is_not_doubtful():
    assert not is_doubtful(WALK, SCENES)
    assert not is_doubtful(part((60, 90)), SCENES)
    assert not is_doubtful(part((40, 100), shown=0.6), SCENES)


def test_few_joints_or_few_frames_make_a_track_doubtful():
    assert is_doubtful(part((40, 100), shown=0.4), SCENES)
    assert is_doubtful(part((20, 40), (200, 220)), SCENES)
    assert is_doubtful(part((60, 70)), SCENES)


def jumping(person, share):
    """The person with joints that jump in every frame by this share of the body's height."""
    jumps = np.random.default_rng(5).normal(0, share, person.rays.shape)
    height = np.ptp(person.rays[..., 1], axis=1).mean()
    return replace(person, rays=person.rays + height * jumps)


@pytest.mark.parametrize("every", [1, 3, 6])
def test_a_walking_person_does_not_jitter_at_any_frame_rate(every):
    rows = slice(None, None, every)
    slow = replace(WALK, **{name: getattr(WALK, name)[rows] for name in WALK.__slots__})
    assert not jitters(slow, SceneTimes.of(slow.times))
    assert not jitters(jumping(slow, 0.004), SceneTimes.of(slow.times))


def test_only_a_short_overlapping_track_is_a_duplicate():
    brief, aside = part((60, 86)), seen_person(walking(8.0) + np.array([2.0, 0, 0]), turn=90, distance=8)
    assert overlaps_longer(jumping(brief, 0.03), WALK)
    assert not overlaps_longer(WALK, brief)
    assert not overlaps_longer(part((0, 130)), WALK)
    assert not overlaps_longer(brief, aside)
    assert not overlaps_longer(brief, part((90, 200)))
