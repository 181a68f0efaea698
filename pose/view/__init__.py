"""What people look at: the 2D overlay and the 3D scene."""
