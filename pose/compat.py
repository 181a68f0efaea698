"""Results under the names of other programs: `from pose.compat import mediapipe_pose`."""

from pose.live import mediapipe_pose

__all__ = ["mediapipe_pose"]
