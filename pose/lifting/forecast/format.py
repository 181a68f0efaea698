"""Sizes, scales and names of a forecaster's inputs and outputs."""

import numpy as np

STEP = 0.04  # s between two ages of the past, and between two predicted steps
PAST_STEPS = 25
FUTURE_STEPS = 25
HORIZONS = (0.08, 0.16, 0.32, 0.4, 0.56, 1.0)  # s; sigma is calibrated and errors are reported at these times
AGES = -STEP * np.arange(PAST_STEPS - 1, -1, -1)  # s, the last frame is 0
COORDINATES = 51  # x, y, z in m: 16 joints relative to the pelvis, then the pelvis relative to its last position
POINTS = 17  # number of these points (16 joints and the pelvis); each has a sigma
SIGMA_FEATURES = 16  # number of joints whose log sigma (mm) is a feature
FEATURES = (
    COORDINATES + COORDINATES + SIGMA_FEATURES + 1 + 3
)  # positions, velocities, log sigma, gap, direction from the camera
VELOCITY_SCALE = 0.2 / STEP  # factor from displacements in m per step to velocity features, in 5 m/s
SIGMA_SCALE = 0.3  # factor from log sigma to features
GAP_SCALE = 10.0  # factor from s to features

INPUT_NAMES = ("past", "ahead")
OUTPUT_NAMES = ("ways", "sigma")
FORMAT = "pose-forecaster-1"
