"""Pre-training objectives on 2D poses: masked joints, the next pose, and poses in any order."""
