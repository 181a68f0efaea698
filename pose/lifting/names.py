"""Names of the shipped lifters. Commands import this module before any heavy one."""

OFFLINE = "offline"
STREAM = "stream"
SLIDING = "sliding"  # streams with the weights of `OFFLINE` (`pose.lifting.sliding`)
SHIPPED = (OFFLINE, STREAM, SLIDING)

DEFAULT_LIFTER = OFFLINE  # for recorded videos and keypoints
DEFAULT_LIVE_LIFTER = SLIDING
