"""Hands of tracked people: 21 points in pixels and in metres (`pose.structures.hand_points`)."""
