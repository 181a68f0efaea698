"""Live test whether standing feet stay in place while the camera's rotation is compensated.

This is the test of `pose.world.footing`, from past frames only. A camera that is carried in front of a wall looks like
one that turns, and standing feet then slide in the world.
"""

from collections import deque

import numpy as np

from pose.structures.types import F64, Flags, FrameResult
from pose.world.camera_motion.verdict import TRANSLATING, UNKNOWN
from pose.world.camera_motion.watch import CameraWatch
from pose.world.contacts import ANKLE_HEIGHT
from pose.world.footing import velocity_peak
from pose.world.gravity import ANKLES
from pose.world.rules import CONTACTS, FOOTING, LIVE


class LiveFooting:
    """Test of a compensated camera rotation with the velocities of lower feet."""

    def __init__(self) -> None:
        """Start without frames."""
        self._feet: dict[int, deque[tuple[float, F64]]] = {}  # by id: times (s), and ankles (2, 3) m in the world
        # time (s), velocity along x and z (m/s), duration (s)
        self._samples: deque[tuple[float, float, float, float]] = deque()
        self._last = self._due = -np.inf
        self._unsupported_s = self._sliding_s = 0.0
        # Result of the test: 'translating' if feet slide, 'unknown' if neither feet nor background support the
        # rotation, else empty.
        self.result = ""

    def update(self, placed: FrameResult, feet_seen: Flags, watch: CameraWatch) -> str:
        """Add a frame with world positions of P people, and return `result`."""
        time = placed.time
        elapsed = min(max(time - self._last, 0.0), LIVE.speed_window_s) if np.isfinite(self._last) else 0.0
        self._last = time
        self._sample(placed, feet_seen, elapsed)
        while self._samples and self._samples[0][0] < time - FOOTING.window_s:
            self._samples.popleft()
        if time >= self._due:
            self._due = time + LIVE.footing_update_interval_s
            self.result = self._tested(watch.excludes_translation, watch.at_rest)
        return self.result

    def _tested(self, excludes_translation: bool, at_rest: bool) -> str:
        rows = np.array(self._samples).reshape(-1, 4)
        known = float(rows[:, 3].sum())
        unsupported = not (known >= LIVE.min_footing_s / 2 or excludes_translation or at_rest)
        self._unsupported_s = self._unsupported_s + LIVE.footing_update_interval_s if unsupported else 0.0
        if known >= LIVE.min_footing_s:
            least = (
                FOOTING.min_rest_density_share
                if excludes_translation and not self.result
                else FOOTING.min_rest_density_share_uncertain
            )
            slides = velocity_peak(rows[:, 1:3], FOOTING.kernel_width_mps)[0] < least
            self._sliding_s = self._sliding_s + LIVE.footing_update_interval_s if slides else 0.0
            return TRANSLATING if slides and (self.result or self._sliding_s > LIVE.min_sliding_s) else ""
        self._sliding_s = 0.0
        if self.result:
            return "" if at_rest else self.result
        return UNKNOWN if self._unsupported_s > LIVE.max_unsupported_s else ""

    def _sample(self, result: FrameResult, feet_seen: Flags, elapsed: float) -> None:
        """Add the velocity of the lower foot of each person, if it is seen and near the floor."""
        assert result.placed is not None
        time = result.time
        ids = result.people.ids.tolist()
        self._feet = {number: self._feet.get(number, deque()) for number in ids}
        for row, number in enumerate(ids):
            joints = result.placed.joints[row].astype(np.float64)
            seen = self._feet[number]
            if not np.isfinite(joints).all():
                seen.clear()
                continue
            ankles = joints[ANKLES]
            while len(seen) > 1 and time - seen[1][0] >= LIVE.speed_window_s:
                seen.popleft()
            low = int(ankles[:, 1].argmin())
            span = time - seen[0][0] if seen else 0.0
            if 0.5 * LIVE.speed_window_s <= span <= 2 * LIVE.speed_window_s:
                velocity = (ankles[low] - seen[0][1][low]) / span
                near = ankles[low, 1] - ANKLE_HEIGHT < CONTACTS.max_contact_height_m
                if feet_seen[row, low] and near and abs(velocity[1]) < FOOTING.max_vertical_mps:
                    line_of_sight = joints[0, [0, 2]] / max(float(np.linalg.norm(joints[0, [0, 2]])), 1e-9)
                    level = velocity[[0, 2]]
                    level = level - (1 - FOOTING.along_share) * float(level @ line_of_sight) * line_of_sight
                    self._samples.append((time, float(level[0]), float(level[1]), elapsed))
            seen.append((time, ankles))
