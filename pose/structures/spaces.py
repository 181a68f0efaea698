"""Names of the coordinate frames of results."""

WORLD, CAMERA = "world", "camera"
SPACES = (WORLD, CAMERA)
