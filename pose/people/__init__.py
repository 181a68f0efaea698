"""Tracking of people in 2D: detection, keypoints and ids from frame to frame."""
