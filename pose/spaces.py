"""Names of the coordinate frames that results can be given in."""

WORLD, CAMERA = "world", "camera"
LEVEL = "level"  # the name of WORLD in exports until version 0.2, accepted for one more release
SPACES = (WORLD, CAMERA)
