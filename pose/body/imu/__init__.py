"""Inertial sensors (IMUs) on the body: files, calibration to the body, joint angles and a skeleton.

    recording = read_imus(Path("walk.zip"))
    motion = solve_imus(recording, height=1.75)
    motion.angles["left_knee_flexion"]  # (T,) degrees

The sensors' orientations come from their own fusion filters. The earth frame has z up; its horizontal axes are those
of the filters, the same for all sensors of a recording.
"""

from pose.body.imu.motion import ImuMotion, solve_imus
from pose.body.imu.readers import is_imu_file, read_imus
from pose.body.imu.recording import ImuRecording, ImuSensor
from pose.body.imu.synchronise import video_offset
from pose.body.imu.video import find_worn

__all__ = [
    "ImuMotion",
    "ImuRecording",
    "ImuSensor",
    "find_worn",
    "is_imu_file",
    "read_imus",
    "solve_imus",
    "video_offset",
]
