"""Skeletons that depth cameras and suits deliver, read from their files."""
