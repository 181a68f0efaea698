"""The cut-off of the smoothing, and what smoothing must not do."""

from dataclasses import replace

import numpy as np
import pytest
from pose_apps.support.world import steps_of
from walker import seen_person, walking

from pose.config import WorldConfig
from pose.errors import UsageError
from pose.structures.smooth import OneEuro, zero_phase
from pose.world.clean import Steps, clean
from pose.world.feet import path_correction, view_axes
from pose.world.rules import SMOOTH
from pose.world.work import GROUPS, all_at, find_cutoffs, smooth_person

ARMS = GROUPS["arms"]


def waving(hertz, noise_m, rng, seconds=8.0):
    """A person who waves both arms in the second half, with noise in every frame."""
    walker = seen_person(walking(seconds, speed=0.6), pitch=-10.0, roll=0.0, turn=25.0, distance=9.0)
    size = len(walker)
    joints = np.tile(walker.joints[:1], (size, 1, 1))
    wave = np.where(walker.times > seconds / 2, 0.1 * np.sin(2 * np.pi * hertz * walker.times), 0)
    joints[:, ARMS, 0] += wave[:, None]
    return replace(walker, joints=joints + noise_m * rng.standard_normal(joints.shape)), joints


def test_fast_arms_get_a_higher_cut_off_than_the_quiet_rest(rng):
    person, exact = waving(6.0, 0.002, rng)
    found = find_cutoffs(person, [slice(0, len(person))])
    assert found.arms > 8
    assert found.trunk == found.legs == SMOOTH.min_cutoff_hz

    def error(cutoffs):
        smooth, _ = smooth_person(person.joints, person.root, person.times, cutoffs)
        return np.abs(smooth - exact)[len(person) // 2 : -30, ARMS].mean()

    assert error(found) < 0.5 * error(all_at(SMOOTH.min_cutoff_hz))


def test_noise_alone_and_short_clips_keep_the_smallest_cut_off(rng):
    person, _ = waving(1.0, 0.01, rng)
    for parts in ([slice(0, len(person))], [slice(0, 8)], []):
        assert find_cutoffs(person, parts) == all_at(SMOOTH.min_cutoff_hz)


def test_a_low_frame_rate_keeps_the_smallest_cut_off(rng):
    person, _ = waving(1.0, 0.01, rng)
    slow = replace(person, times=np.arange(len(person)) / 5)  # too few cut-offs for a line of residuals
    assert find_cutoffs(slow, [slice(0, len(slow))]) == all_at(SMOOTH.min_cutoff_hz)


def test_a_given_cut_off_holds_for_all_joints(rng):
    person, _ = waving(6.0, 0.002, rng)
    _, people = clean({1: person}, steps=Steps(cutoff_hz=2.0, feet=False))
    assert people[1].cutoffs == all_at(2.0)
    arms = people[1].joints[:, ARMS[1], 0]
    half = len(arms) // 2
    assert np.ptp(arms[half + 30 : -30]) < 0.05, "of 0.2 m"
    assert steps_of(WorldConfig(cutoff=4.0)).cutoff_hz == 4.0
    with pytest.raises(UsageError, match="--no-smooth turns off"):
        WorldConfig(cutoff=4.0, smooth=False)


def test_the_raw_motion_stays_in_the_result(rng):
    person, _ = waving(6.0, 0.002, rng)
    _, people = clean({1: person}, steps=Steps(bones=False, smooth=True))
    raw, given = people[1].raw - people[1].raw[:, :1], person.joints - person.joints[:, :1]
    size = np.linalg.norm(raw[0]) / np.linalg.norm(given[0])  # of the estimated body
    np.testing.assert_allclose(raw, size * given, atol=1e-9)


def test_values_in_any_memory_order_are_filtered(rng):
    values, times = rng.standard_normal((60, 5, 3)), np.arange(60) / 30
    other = np.asfortranarray(values)
    np.testing.assert_allclose(zero_phase(other, times, 5.0), zero_phase(values, times, 5.0))


def test_path_corrections_do_not_move_the_person_in_the_image(rng):
    """The same drift of a standing foot: along the ray it is removed, across the ray the image has the last word."""
    size, camera = 90, np.array([0.0, 1.5, 0.0])
    place = np.array([2.5, 0.9, -3.0])
    along = (place - camera) / np.linalg.norm(place - camera)
    times, standing = np.arange(size) / 30, np.ones((size, 2), bool)
    axes = view_axes(np.tile(place, (size, 1)), np.tile(camera, (size, 1)))
    np.testing.assert_allclose(axes[0] @ axes[0].T, np.eye(3), atol=1e-12)
    left = []
    for direction in (along, axes[0, 0]):
        ankles = np.tile([[2.4, 0.1, -3.0], [2.6, 0.1, -3.0]], (size, 1, 1))
        ankles = ankles + 0.1 * np.sin(times)[:, None, None] * direction
        correction = path_correction(ankles, standing, times, axes=axes)
        across = correction - (correction @ along)[:, None] * along
        assert np.abs(across).max() < 0.02
        left.append(np.ptp((ankles + correction[:, None])[:, 0] @ direction))
    assert left[0] < 0.03 < 0.05 < left[1]


TIMES = np.arange(150) / 30


def test_constant_speed_is_unchanged():
    path = np.outer(TIMES, [1.0, -2.0, 0.5]) + np.array([3, 0, 1])
    np.testing.assert_allclose(zero_phase(path, TIMES, 4.0), path, atol=1e-9)


@pytest.mark.parametrize(("hertz", "gain"), [(1.0, 1.0), (6.0, 0.5), (12.0, 1 / 17)])
def test_gain_equals_a_double_butterworth(hertz, gain):
    wave = np.sin(2 * np.pi * hertz * TIMES)
    smooth = zero_phase(wave, TIMES, 6.0)[30:-30]
    assert np.abs(smooth - gain * wave[30:-30]).max() < 0.02


def test_smoothing_does_not_depend_on_frame_rate():
    def at(times):
        return zero_phase(np.sin(2 * np.pi * 4 * times), times, 4.0)

    many = np.arange(600) / 120
    np.testing.assert_allclose(at(many)[::4][:-6], at(TIMES)[:-6], atol=0.02)


def test_uneven_times_are_smoothed(rng):
    times = np.cumsum(rng.uniform(0.02, 0.05, 200))
    assert np.abs(zero_phase(3 * times, times, 4.0) - 3 * times).max() < 1e-9
    wave = np.sin(2 * np.pi * 0.5 * times)
    assert np.abs(zero_phase(wave, times, 5.0) - wave)[20:-20].max() < 0.01


def test_one_euro_suppresses_jitter_and_follows_motion(rng):
    still, moving = OneEuro(1.0, 1.0), OneEuro(1.0, 1.0)
    noise = 0.01 * rng.standard_normal(len(TIMES))
    calm = np.array([still(np.array([x]), t)[0] for x, t in zip(noise, TIMES, strict=True)])
    fast = np.array([moving(np.array([3 * t]), t)[0] for t in TIMES])
    assert calm[30:].std() < 0.5 * noise[30:].std()
    assert np.abs(fast - 3 * TIMES)[60:].max() < 0.15  # m behind at 3 m/s: 50 ms
