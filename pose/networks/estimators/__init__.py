"""Estimators of 2D keypoints in crops of people, one module per model family."""
