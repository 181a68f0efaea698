"""Face landmarks of tracked people: 468 points (`pose.face_points`). There is no face recognition."""
