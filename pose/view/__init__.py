"""Visualisation of results: 2D overlays, 3D scenes and views from above."""
