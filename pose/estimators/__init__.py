"""Crop to keypoints: one file a model family."""
