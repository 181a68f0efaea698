"""Repair of 2D keypoints before lifting."""
