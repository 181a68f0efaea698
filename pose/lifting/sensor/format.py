"""Sizes and names of the inputs and outputs of the network that corrects 3D skeletons of sensors, without torch."""

JOINTS = 17
# Joints about the pelvis (17 x 3), raw minus smooth (17 x 3), scores (17), pelvis about its mean (3), its step (3),
# the step in time, and whether the joints are those of a Kinect v2.
FEATURES = 2 * 3 * JOINTS + JOINTS + 3 + 3 + 2
OUTPUTS = 3 * JOINTS + JOINTS  # corrections of the pelvis and of the joints about it, in m; log sigma
INPUT_NAMES = ("features", "times")
OUTPUT_NAMES = ("corrections", "sigma")
FORMAT = "pose-sensor-1"
SHIPPED = "sensor"
