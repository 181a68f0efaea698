"""What several live cameras say while they cannot be calibrated."""

from dataclasses import replace

import numpy as np
import pytest
from several_fakes import Player, rigging_of, scenes, stage_of

from pose.live.several.waiting import PATIENCE_SECONDS
from pose.structures.types import FrameResult, People, Poses3D

SECONDS = PATIENCE_SECONDS + 2.0
RATE = 6.0
NOBODY = FrameResult(
    People(0, 0.0, *(np.zeros(shape, np.float32) for shape in ((0,), (0, 4), (0,), (0, 17, 2), (0, 17)))),
    Poses3D(*(np.zeros(shape, np.float32) for shape in ((0, 17, 3), (0, 3), (0, 17)))),
)


def waits(one, other):
    """The message by second of a run; `one` and `other` choose frames of the cameras and change their results."""
    person = scenes.person(1, SECONDS)
    views = scenes.cameras((0.0, 90.0), people=[person], seed=2, seconds=SECONDS, rates=(RATE,))
    rigging = rigging_of(views)
    player = Player(stage_of(rigging, world=False), scenes.exact(views))
    tracks = [scenes.track(view, index, person, noise_px=2.0) for index, view in enumerate(views)]
    said = {}
    for row, time in enumerate(tracks[0].times.tolist()):
        for index, change in enumerate((one, other)):
            live = change(row, player._live(row, time, index, [(tracks[index], row)]))
            if live is not None:
                player.stage.take([(index, live)])
        said[time] = rigging.message
    assert rigging.calibration is None
    assert all(not words for time, words in said.items() if time < PATIENCE_SECONDS)
    return rigging.message


def moving(row, live):
    return live


def still(row, live):
    first = still.first = live if row == 0 else still.first
    return replace(live, result=replace(live.result, poses=first.result.poses))


def nobody(row, live):
    return replace(live, result=NOBODY)


def slow(row, live):
    return live if row % 3 == 0 else None


def silent(row, live):
    return None


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (nobody, "camera 1: no person seen; let people clap, wave or walk about in view of all cameras"),
        (still, "camera 1: too little motion of people; let people clap"),
        (slow, "camera 1: fewer than 4 frames/s are processed; use fewer cameras"),
        (silent, "not calibrated: fewer than two cameras send images"),
    ],
)
def test_uncalibrated_cameras_are_named_with_a_remedy(other, words):
    message = waits(moving, other)
    assert words in message
    assert "camera 0" not in message
    assert "\n" not in message


def test_cameras_of_different_scenes_are_named():
    seconds = 14.0
    people = [scenes.person(seed, seconds) for seed in (1, 7)]
    views = scenes.cameras((0.0, 90.0), people=people[:1], seed=2, seconds=seconds, rates=(15.0,))
    rigging = rigging_of(views)
    tracks = [scenes.track(view, index, people[index], noise_px=2.0) for index, view in enumerate(views)]
    Player(stage_of(rigging), scenes.exact(views)).play(tracks)
    assert rigging.calibration is None
    assert rigging.message.startswith("not calibrated: ")
    assert "let people clap, wave or walk about" in rigging.message
    assert "--" not in rigging.message
