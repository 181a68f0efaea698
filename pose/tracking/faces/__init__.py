"""Face landmarks of tracked people: 468 points (`pose.structures.face_points`). There is no face recognition."""
