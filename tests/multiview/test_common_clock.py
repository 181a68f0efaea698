"""Clocks of calibrated cameras: one clock for all, unless the people contradict it significantly."""

from dataclasses import replace

import numpy as np
import pytest
import scenes

from pose.errors import PoseError
from pose.multiview.calibrate import Known
from pose.multiview.clocks import SOUND, SYNCHRONOUS, ClockHint
from pose.multiview.rig import find_rig

NAMES = ["left", "right"]
SECONDS = 3.0


@pytest.fixture(scope="module")
def filmed():
    """A person who walks by at 1 m/s, two calibrated cameras with one clock, and tracks with white noise."""
    points = scenes.person(1, SECONDS)
    points[..., 0] += (np.arange(len(points)) / scenes.RATE - SECONDS / 2)[:, None]
    views = scenes.cameras((0.0, 70.0), people=[points], seed=2, seconds=SECONDS)
    return scenes.exact(views), [scenes.track(view, i, points, noise_px=2.0) for i, view in enumerate(views)]


def lasting_errors(shape, seed):
    """Errors with the standard deviation 1 that last for about half a second."""
    kernel = np.exp(-0.5 * (np.arange(-36, 37) / 12) ** 2)
    noise = np.random.default_rng(seed).standard_normal((shape[0] + 72, int(np.prod(shape[1:]))))
    errors = np.stack([np.convolve(column, kernel, "valid") for column in noise.T], axis=1)
    return (errors / errors.std()).reshape(shape)


def rig_of(cameras, tracks, late=0.0, hints=()):
    tracks = [tracks[0], replace(tracks[1], times=tracks[1].times - late)]
    return find_rig(tracks, cameras, NAMES, Known(poses=True), hints)


@pytest.mark.parametrize("seed", [1, 2])
def test_lasting_errors_of_detections_do_not_move_a_clock(filmed, seed):
    cameras, tracks = filmed
    wrong = [
        replace(
            track,
            keypoints=track.keypoints + 12 * lasting_errors(track.keypoints.shape, 2 * seed + index).astype(np.float32),
        )
        for index, track in enumerate(tracks)
    ]
    rig = rig_of(cameras, wrong)
    assert rig.cameras[1].offset == 0
    assert rig.cameras[1].drift == 0
    assert rig.clocks[1] == (SYNCHRONOUS,)
    assert 0.005 < rig.accuracy[1].offset < 0.05


@pytest.mark.parametrize("late", [0.04, 1.25])
def test_a_clock_that_differs_is_found(filmed, late):
    rig = rig_of(*filmed, late)
    assert rig.cameras[1].offset == pytest.approx(late, abs=2 * rig.accuracy[1].offset)
    assert rig.accuracy[1].offset < 0.01
    assert SYNCHRONOUS not in rig.clocks[1]


def test_sound_contradicts_one_clock_where_motion_cannot(filmed):
    cameras, tracks = filmed
    still = [
        replace(
            track, **{name: np.repeat(getattr(track, name)[:1], len(track), axis=0) for name in track.__slots__[3:]}
        )
        for track in tracks
    ]
    assert rig_of(cameras, still).clocks[1] == (SYNCHRONOUS,)
    heard = rig_of(cameras, still, hints=[ClockHint(0, 1, 0.3, SOUND)])
    assert heard.cameras[1].offset == pytest.approx(0.3, abs=0.05)
    assert heard.clocks[1] == (SOUND,)


def test_other_people_are_no_common_clock(filmed):
    cameras, tracks = filmed
    elsewhere = replace(tracks[1], keypoints=tracks[1].keypoints + np.float32(500))
    with pytest.raises(PoseError, match=r"no person is seen by two cameras|does not fit"):
        rig_of(cameras, [tracks[0], elsewhere])
