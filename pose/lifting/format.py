"""Sizes of a lifter's inputs and outputs, and the tensor names in exported files.

Imports neither torch nor ONNX Runtime.
"""

import math

import numpy as np

from pose.structures.types import F32

JOINTS = 17
PELVIS = 0
FEATURES = 4 * JOINTS + 7
OUTPUTS = 1 + JOINTS + JOINTS + 2 * JOINTS + (JOINTS - 1)
MIN_SPREAD = 1e-3
TYPICAL_STEP = 1 / 30  # s between frames, where the frame rate is not known

STEP_INPUT_NAMES = ("keypoints", "scores", "time", "intrinsics", "derived", "intrinsics_known")
WINDOW_INPUT_NAMES = tuple("times" if name == "time" else name for name in STEP_INPUT_NAMES)
OUTPUT_NAMES = ("joints", "root", "sigma")
STREAM_STATE_NAMES = ("frames", "recent", "recent_times")

WINDOW_FORMAT = "pose-lifter-window-1"
STEP_FORMAT = "pose-lifter-step-1"
SLIDING_FORMAT = "pose-lifter-sliding-1"


def nothing_observed(people: int) -> F32:
    """Return the features (P, F) of a frame without detections, which precedes the first frame of each of P people."""
    features = np.zeros((people, FEATURES), np.float32)
    features[:, 4 * JOINTS + 2] = math.log(MIN_SPREAD)
    return features
