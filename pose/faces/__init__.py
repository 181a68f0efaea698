"""Faces of tracked people: 468 points (`pose.face_points`). No person is identified."""
