"""Set-ups with keypoints or a calibration that several cameras get wrong easily."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from setups import ONE, Setup, changed, filmed, setup, swapped_name, turned

from pose.multiview.calibrate import Known
from pose.multiview.types import ViewCamera
from pose.structures.skeletons import H36M17


# What the 2D networks may do.
def second_with(one: Setup, **parts) -> Setup:
    return replace(one, tracks=[one.tracks[0], changed(one.tracks[1], **parts)])


@setup
def _keypoints_with_much_noise():
    return filmed([ONE], noise_px=15.0)


@setup
def _keypoints_at_random():
    one = filmed([ONE])
    track = one.tracks[1]
    rng = np.random.default_rng(5)
    return second_with(
        one, keypoints=rng.uniform(0, 1000, track.keypoints.shape).astype(np.float32),
        joints=rng.normal(0, 0.3, track.joints.shape).astype(np.float32),
    )  # fmt: skip


@setup
def _scores_of_nought():
    one = filmed([ONE])
    return second_with(one, scores=np.zeros_like(one.tracks[1].scores))


@setup
def _a_frozen_video():
    one = filmed([ONE])
    track = one.tracks[1]
    parts = {name: np.repeat(getattr(track, name)[:1], len(track), axis=0) for name in ("keypoints", "joints", "root")}
    return second_with(one, **parts)


@setup
def _only_the_upper_body():
    one = filmed([ONE])
    scores = one.tracks[1].scores.copy()
    scores[:, 1:7] = 0
    return second_with(one, scores=scores)


@setup
def _only_the_legs():
    one = filmed([ONE])
    scores = one.tracks[1].scores.copy()
    scores[:, 8:] = 0
    return second_with(one, scores=scores)


@setup
def _left_and_right_swapped_throughout():
    one = filmed([ONE], (0.0, 80.0, 190.0))
    order = [H36M17.index(swapped_name(name)) for name in H36M17.names]
    track = one.tracks[1]
    swapped = changed(track, keypoints=track.keypoints[:, order], joints=track.joints[:, order])
    return replace(one, tracks=[one.tracks[0], swapped, one.tracks[2]])


@setup
def _a_lifter_that_mistakes_front_for_back():
    one = filmed([ONE])
    return second_with(one, joints=one.tracks[1].joints * np.array([1, 1, -1], np.float32))


@setup
def _a_body_twice_as_large_in_one_camera():
    one = filmed([ONE])
    return second_with(one, joints=2 * one.tracks[1].joints, root=2 * one.tracks[1].root)


@setup
def _depth_that_is_wrong_by_half():
    one = filmed([ONE])
    return second_with(one, root=1.5 * one.tracks[1].root)


@setup
def _a_track_of_three_frames():
    one = filmed([ONE])
    return replace(one, tracks=[one.tracks[0], one.tracks[1][:3]])


# A calibration that does not fit.
def given(change: Callable[[list[ViewCamera]], list[ViewCamera]], azimuths=(0.0, 90.0), clocks=False) -> Setup:
    one = filmed([ONE], azimuths)
    return replace(one, told=change(list(one.truth)), known=Known(poses=True, clocks=clocks))


def second_camera(one: list[ViewCamera], **parts) -> list[ViewCamera]:
    return [one[0], replace(one[1], **parts), *one[2:]]


@setup
def _a_calibration_that_fits():
    return given(lambda one: one)


@setup
def _a_calibration_of_cameras_in_another_order():
    return given(lambda one: [one[0], one[2], one[1]], (0.0, 80.0, 200.0))


@setup
def _a_calibrated_camera_turned_by_twenty_degrees():
    return given(lambda one: second_camera(one, rotation=turned(20) @ one[1].rotation))


@setup
def _a_calibrated_camera_turned_by_three_degrees():
    return given(lambda one: second_camera(one, rotation=turned(3) @ one[1].rotation))


@setup
def _a_calibrated_camera_that_was_carried_half_a_metre():
    return given(lambda one: second_camera(one, translation=one[1].translation + np.array([0.5, 0, 0])))


@setup
def _a_calibrated_focal_length_wrong_by_a_third():
    return given(lambda one: second_camera(one, focal=one[1].focal * 1.33))


@setup
def _a_calibration_in_the_wrong_unit():
    return given(lambda one: second_camera(one, translation=10 * one[1].translation))


@setup
def _calibrated_cameras_at_one_place():
    return given(lambda one: second_camera(one, rotation=one[0].rotation, translation=one[0].translation))


@setup
def _a_calibration_from_behind_a_mirror():
    return given(lambda one: second_camera(one, rotation=turned(180) @ one[1].rotation))
