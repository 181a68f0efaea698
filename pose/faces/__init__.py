"""Face landmarks of tracked people: 468 points (`pose.face_points`). People are not identified."""
