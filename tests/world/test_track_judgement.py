"""Which frames of a track show a person, which tracks and limbs are doubtful, and which frames are not shown whole."""

from dataclasses import replace

import numpy as np
import pytest
from walker import ANKLES, seen_person, standing, walking

from pose.structures.skeletons import H36M17, LIMBS
from pose.world.clean import Steps, clean, partial_frames
from pose.world.consistency import check_limbs
from pose.world.frame import up_of
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


STANDER = seen_person(standing(4.0))


def displaced(person, limb, share=0.5, frames=slice(None)):
    """The middle joint of a limb is seen at a share of the upper bone."""
    first, middle, _ = (H36M17.index(joint) for joint in LIMBS[limb])
    rays = person.rays.copy()
    rays[frames, middle] = rays[frames, first] + share * (rays[frames, middle] - rays[frames, first])
    return replace(person, rays=rays)


def test_normal_person_is_not_flagged():
    flags, added = check_limbs(STANDER)
    assert not flags.any()
    assert not added.any()


@pytest.mark.parametrize("limb", ["left_leg", "right_leg"])
def test_misplaced_knee_flags_only_its_leg(limb):
    flags, added = check_limbs(displaced(STANDER, limb))
    column = list(LIMBS).index(limb)
    assert flags[:, column].mean() > 0.9
    assert not np.delete(flags, column, axis=1).any()
    _, knee, ankle = (H36M17.index(joint) for joint in LIMBS[limb])
    assert np.median(added[:, knee]) > 60  # mm; the knee is seen 0.2 m away from where it is
    assert np.array_equal(added[:, knee], added[:, ankle])
    assert not np.delete(added, [knee, ankle], axis=1).any()


def test_cleaning_enlarges_sigma_and_keeps_the_flag():
    person = displaced(STANDER, "left_leg")
    knee = H36M17.index("left_knee")
    before = clean({1: STANDER}, STANDER.times, Steps())[1][1]
    after = clean({1: person}, person.times, Steps())[1][1]
    assert not before.inconsistent.any()
    assert after.inconsistent[:, 0].mean() > 0.9
    assert np.median(after.sigma[:, knee]) > np.median(before.sigma[:, knee]) + 30


LEGS = [1, 2, 3, 4, 5, 6]


def placed(feet):
    """(T, 17, 3) m of people whose lower ankle is at these heights."""
    joints = np.ones((len(feet), 17, 3))
    joints[:, ANKLES[0], 1] = feet
    return joints


def flags(feet, visible, *visits):
    return partial_frames(placed(feet), np.array(visible, bool), list(visits) or [slice(0, len(feet))]).tolist()


def test_frames_before_and_after_full_view_are_partial():
    assert flags([0.1] * 6, [0, 0, 1, 0, 1, 0]) == [True, True, False, False, False, True]


def test_frames_below_the_floor_are_partial():
    assert flags([0.1, 0.1, -0.01, 0.0], [1, 1, 1, 1]) == [False, False, True, False]


def test_never_fully_seen_person_is_judged_by_the_floor():
    assert flags([0.1, -0.1, 0.1], [0, 0, 0]) == [False, True, False]


def test_person_entering_with_hidden_legs_is_partial():
    walk = seen_person(walking(4.0), turn=90, distance=6)
    scores = walk.scores.copy()
    scores[:20, LEGS] = 0
    _, people = clean({1: replace(walk, scores=scores)}, walk.times, Steps(up=up_of(0, 0)))
    assert people[1].partial[:20].all()
    assert not people[1].partial[20:].any()
