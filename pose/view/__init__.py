"""Visualisation: the 2D overlay and the 3D scene."""
