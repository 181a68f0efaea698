"""Sensors of a simulated walk with known headings, mountings and joint angles."""

import numpy as np

from pose.body.imu import ImuRecording
from pose.body.imu.recording import sensor_of
from pose.structures.rotations import about, from_matrix, inverse, multiply, unit

RATE = 60.0
STANDING_SECONDS = 1.0


def angles(times, faster=0.03):
    """Return hip and knee flexion of the left and right leg in rad."""
    moving = np.clip(times - STANDING_SECONDS, 0, None)
    phase = 2 * np.pi * (0.8 + faster * moving) * moving  # steps become faster
    start = np.clip(moving, 0, 1)
    hips = [0.4 * start * np.sin(phase + shift) for shift in (0, np.pi)]
    knees = [0.5 * start * (1 - np.cos(phase + shift)) for shift in (0.6, np.pi + 0.6)]
    return hips, knees


def walk(heading=0.0, seconds=8.0, offset=0.0, seed=0, faster=0.03):
    """Return a recording of pelvis, thighs and shanks, and its hip and knee angles in rad."""
    random = np.random.default_rng(seed)
    times = np.arange(0, seconds, 1 / RATE)
    hips, knees = angles(times, faster)
    cosine, sine = np.cos(heading), np.sin(heading)
    earth_from_world = inverse(from_matrix(np.array([[-sine, cosine, 0], [0, 0, 1], [cosine, sine, 0]])))
    x = np.array([1.0, 0, 0])
    segments = {"pelvis": np.tile([1.0, 0, 0, 0], (len(times), 1))}
    for side, hip, knee in zip(("left", "right"), hips, knees, strict=True):
        segments[f"{side}_thigh"] = about(x, -hip)
        segments[f"{side}_shank"] = about(x, knee - hip)
    sensors = []
    for segment, q in segments.items():
        mounting = unit(random.normal(size=4))
        orientation = multiply(multiply(earth_from_world, q), mounting)
        sensors.append(sensor_of(segment, segment, times + offset, orientation, "walk"))
    return ImuRecording.of(sensors, "walk"), hips, knees
