"""Names of the coordinate frames of results."""

WORLD, CAMERA = "world", "camera"
LEVEL = "level"  # the name of WORLD in exports until version 0.2, accepted for one more release
SPACES = (WORLD, CAMERA)
