"""Sizes, scales and names of a forecaster's inputs and outputs."""

import numpy as np

STEP = 0.04  # s between two ages of the past, and between two predicted steps
PAST_STEPS = 25
FUTURE_STEPS = 25
HORIZONS = (0.08, 0.16, 0.32, 0.4, 0.56, 1.0)  # s; sigma is calibrated and errors are reported at these times
AGES = -STEP * np.arange(PAST_STEPS - 1, -1, -1)  # s, the last frame is 0
PATHS = 51  # x, y, z in m of 16 joints relative to the pelvis, then of the pelvis relative to its last position
POINTS = 17  # number of these points; each has a sigma
SPREADS = 16  # log sigma (mm) of the joints
FEATURES = PATHS + PATHS + SPREADS + 1 + 3  # positions, velocities, log sigma, gap, direction from the camera
VELOCITY_SCALE = 0.2 / STEP  # m/s, scaled by a fifth
SPREAD_SCALE = 0.3  # of log mm
GAP_SCALE = 10.0  # of s

INPUTS = ("past", "ahead")
ANSWER = ("ways", "sigma")
FORMAT = "pose-forecaster-1"
