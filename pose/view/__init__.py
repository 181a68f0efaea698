"""Visualisation of results as a 2D overlay and a 3D scene."""
