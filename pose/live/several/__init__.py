"""Several live cameras: one loop for each, calibration from the people they see, and fusion into one world."""

from pose.live.several.loop import SeveralLoop

__all__ = ["SeveralLoop"]
