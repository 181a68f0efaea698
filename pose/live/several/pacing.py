"""Frame rate of the cameras that are not displayed, limited so that the displayed camera keeps its own."""

import math

from pose.live.result import LiveStatus

PERIOD_S = 1.0  # time between changes
WANTED_FPS = 15.0  # frame rate that the displayed camera keeps, if its source has as much
MIN_FPS = 5.0  # of the other cameras; motion is measured from 4 frames/s on (`sightings.MAX_STEP_SECONDS`)
SLOWER, FASTER = 0.8, 1.15  # factors of one change


class Pacing:
    """Choice of the greatest frame rate of each camera that is not displayed."""

    def __init__(self) -> None:
        """Start without a limit."""
        self.max_fps = math.inf
        self._since = math.nan  # time of the last change, s
        self._counts: tuple[int, int, int] | None = None  # displayed camera, processed and dropped frames at that time

    def is_due(self, now: float) -> bool:
        """Return whether `step` is to be called at a time (s)."""
        return not now - self._since < PERIOD_S

    def step(self, now: float, lead: int, shown: LiveStatus, others_fps: float) -> float:
        """Return the limit, frames/s.

        Args:
            now: Time, s.
            lead: Index of the displayed camera.
            shown: Status of this camera's loop.
            others_fps: Largest frame rate of the other cameras.
        """
        before, self._counts = self._counts, (lead, shown.processed, shown.dropped)
        if before is not None and before[0] == lead:
            fps = (shown.processed - before[1]) / (now - self._since)
            if shown.dropped > before[2] and fps < WANTED_FPS:
                self.max_fps = max(MIN_FPS, SLOWER * min(self.max_fps, others_fps))
            else:
                self.max_fps *= FASTER
        self._since = now
        return self.max_fps
