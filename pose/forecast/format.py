"""What goes into a forecaster's network and comes out: sizes, scales and the names that exported files use."""

import numpy as np

STEP = 0.04  # s between two ages of the past, and two steps of what is rolled out
PAST_STEPS = 25
FUTURE_STEPS = 25
HORIZONS = (0.08, 0.16, 0.32, 0.4, 0.56, 1.0)  # s, where sigma is calibrated and errors are reported
AGES = -STEP * np.arange(PAST_STEPS - 1, -1, -1)  # s, the last frame is 0
PATHS = 51  # 16 joints relative to the pelvis, then the pelvis relative to its last place; x, y, z of each, m
POINTS = 17  # the same, counted as points; sigma has one for each
SPREADS = 16  # log sigma (mm) of the joints
FEATURES = PATHS + PATHS + SPREADS + 1 + 3  # places, speeds, log sigma, gap, direction from the camera
VELOCITY_SCALE = 0.2 / STEP  # a fifth of m/s
SPREAD_SCALE = 0.3  # of log mm
GAP_SCALE = 10.0  # of s

INPUTS = ("past", "ahead")
ANSWER = ("ways", "sigma")
FORMAT = "pose-forecaster-1"
