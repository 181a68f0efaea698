"""Tracking of people in 2D: detection, keypoints, and ids that stay the same from frame to frame."""
