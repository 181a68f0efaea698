"""Repair of 2D keypoints before lifting: left-right swaps, outliers and low scores."""
