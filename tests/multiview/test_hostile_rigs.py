"""Degenerate and hostile set-ups: each is right, or answered in one line, never silently wrong."""

import hostile_inputs  # noqa: F401 - adds to SETUPS
import hostile_scenes  # noqa: F401 - adds to SETUPS
import numpy as np
import pytest
import scenes
from setups import SETUPS, Setup

from pose.errors import PoseError
from pose.multiview.rig import find_rig

LARGEST_TURN = 10.0  # degrees; what a wrong rig exceeds
LARGEST_OFF = 0.1  # s
FAST = ("nobody_at_all", "keypoints_at_random", "a_mirrored_video", "one_person_who_stands_still")
REFUSED = {  # in these the line is an error, and what it says
    "one_clip_twice": "same view as cam1",
    "one_clip_twice_cut_differently": "same view as cam1",
    "one_clip_twice_at_another_size": "same view as cam1",
    "a_mirrored_video": "same moment",
    "one_person_who_stands_still": "let people clap",
    "each_person_in_one_camera_only": "cam2: its motion matches no other",
    "nobody_in_a_camera": "cam2: no person found",
    "nobody_at_all": "cam1: no person found",
    "other_people": "cam2: its motion matches no other",
    "one_camera_of_three_shows_another_scene": "cam3: its motion matches no other",
    "a_video_played_backwards": "cam2: its motion matches no other",
    "slow_motion": "cam2: its motion matches no other",
    "given_clocks_that_are_wrong_by_a_second": "cam2: its motion matches no other",
    "keypoints_at_random": "cam2: its motion matches no other",
    "a_frozen_video": "cam2: its motion matches no other",
    "a_calibrated_camera_turned_by_twenty_degrees": "the calibration does not fit",
    "a_calibration_in_the_wrong_unit": "the calibration does not fit",
}
NAMED = {  # in these the line is a note
    "two cameras 8 degrees apart": "side by side",
    "two cameras 177 degrees apart": "opposite each other",
    "a_calibrated_camera_that_was_carried_half_a_metre": "poorly",
    "a_calibrated_camera_turned_by_three_degrees": "was it moved",
    "a_calibrated_focal_length_wrong_by_a_third": "poorly",
    "one_person_who_stands_still_between_given_clocks": "uncertain",
    "given_clocks_that_are_wrong_by_a_fifth_of_a_second": "check --offsets",
    "a_motion_that_repeats_itself": "start time is ambiguous",
}


def is_right(rig, setup: Setup) -> bool:
    turns = [
        scenes.degrees_between(one.rotation, true.rotation)
        for one, true in zip(rig.cameras[1:], setup.truth[1:], strict=True)
    ]
    offs = [abs(one.offset - true.offset) for one, true in zip(rig.cameras[1:], setup.truth[1:], strict=True)]
    who = setup.people or {(track.camera, track.number): track.number for track in setup.tracks}
    merged = any(len({who[key] for key in tracks}) > 1 for tracks in rig.tracks)
    return max(turns) < LARGEST_TURN and max(offs) < LARGEST_OFF and not merged


def test_hostile_setups_cover_many_cases():
    assert len(SETUPS) >= 60
    assert {*REFUSED, *NAMED, *FAST} <= set(SETUPS)


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in SETUPS]
)
def test_hostile_rigs_are_solved_or_rejected(name):
    setup = SETUPS[name]()
    names = [f"cam{index + 1}" for index in range(len(setup.told))]
    message, rig = "", None
    try:
        rig = find_rig(setup.tracks, setup.told, names, setup.known)
    except PoseError as error:
        message = str(error)
    assert "\n" not in message
    assert REFUSED.get(name, "") in message
    if rig is None:
        return
    assert all("\n" not in note for note in rig.notes)
    assert NAMED.get(name, "") in " ".join(rig.notes)
    assert rig.notes or is_right(rig, setup)
    assert all(np.isfinite(camera.translation).all() for camera in rig.cameras)
