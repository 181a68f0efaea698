"""Mounting, heading and time offset of simulated sensors."""

import numpy as np
import pytest
from synthetic_walk import RATE, STANDING_SECONDS, walk

from pose.body.imu import ImuRecording, solve_imus, video_offset
from pose.body.imu.readers import segment_of
from pose.body.imu.recording import sensor_of
from pose.errors import PoseError
from pose.structures.rotations import about


@pytest.mark.parametrize("heading", [0.0, 0.7, 2.5, -1.9, np.pi])
def test_heading_and_mountings_are_found_from_standing_and_walking(heading):
    recording, hips, knees = walk(heading)
    motion = solve_imus(recording, rate=RATE)
    error = np.angle(np.exp(1j * (motion.calibration.heading - heading)))
    assert abs(np.degrees(error)) < 0.1
    assert motion.calibration.heading_known
    for side, hip, knee in zip(("left", "right"), hips, knees, strict=True):
        np.testing.assert_allclose(motion.angles[f"{side}_hip_flexion"], np.degrees(hip[: len(motion.times)]), atol=0.1)
        np.testing.assert_allclose(
            motion.angles[f"{side}_knee_flexion"], np.degrees(knee[: len(motion.times)]), atol=0.1
        )


def test_without_a_bent_hinge_the_heading_is_unknown():
    recording, *_ = walk(1.0)
    pelvis = ImuRecording.of(list(recording.sensors[:1]), "pelvis")
    assert not solve_imus(pelvis).calibration.heading_known


def test_recording_without_a_standing_pose_is_refused():
    times = np.arange(0, 5, 0.01)
    spinning = about(np.array([0, 0, 1.0]), 3 * times)
    recording = ImuRecording.of([sensor_of("pelvis", "pelvis", times, spinning, "spin")], "spin")
    with pytest.raises(PoseError, match="never still"):
        solve_imus(recording)


@pytest.mark.parametrize("offset", [-3.2, 0.0, 4.7])
def test_time_offset_to_a_video_is_found_within_a_frame(offset):
    truth, *_ = walk(0.4)
    video = solve_imus(truth, rate=30.0)
    part = video.times > STANDING_SECONDS + 0.5
    random = np.random.default_rng(3)
    joints = video.joints[part] + random.normal(0, 0.01, (part.sum(), 17, 3))
    moved, *_ = walk(0.4, offset=-offset)
    found, correlation = video_offset(moved, joints, video.times[part])
    assert abs(found - offset) < 1 / 30
    assert correlation > 0.6


def test_motion_of_somebody_else_has_no_offset():
    recording, *_ = walk()
    times = np.arange(0, 6, 1 / 30)
    joints = np.random.default_rng(1).normal(0, 0.3, (len(times), 17, 3))
    with pytest.raises(PoseError, match="fits the video nowhere"):
        video_offset(recording, joints, times)


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("Left Lower Leg", "left_shank"), ("tibia_r_imu", "right_shank"), ("RightForeArm", "right_forearm"),
        ("femur_l_imu", "left_thigh"), ("L_Foot", "left_foot"), ("torso_imu", "trunk"), ("Pelvis", "pelvis"),
        ("calcn_l", "left_foot"), ("LeftUpperArm", "left_upper_arm"), ("T8", "trunk"), ("Head", "head"),
        ("thigh", None), ("camera", None), ("", None),
    ],
)  # fmt: skip
def test_names_of_sensors_mean_segments(name, segment):
    assert segment_of(name) == segment
