"""Estimators of 2D keypoints in crops, one file per model family."""
