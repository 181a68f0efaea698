"""Live loop over several cameras: one loop for each camera, calibration from the people in view, and fusion of 3D
poses.
"""

from pose.live.several.loop import SeveralLoop

__all__ = ["SeveralLoop"]
