"""Live state of one person: bone lengths, filtered distance and foot contacts, from past frames only."""

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

from pose.structures.skeletons import H36M17
from pose.structures.types import F64
from pose.world.rules import CONTACTS, DEPTH, LIVE

_PARENTS, _CHILDREN = np.array(H36M17.edges).T


def _mirrored_edges() -> NDArray[np.int64]:
    """Return for each bone (16,) the index of the same bone on the other side, for middle bones itself."""
    flip = H36M17.flip_order
    edges = list(H36M17.edges)
    return np.array([edges.index((int(flip[a]), int(flip[b]))) for a, b in edges])


_MIRRORED = _mirrored_edges()


class LiveBones:
    """Running means of a person's bone lengths, equal on both sides of the body."""

    # A bone becomes constant after it was seen for `LIVE.bone_settle_s` seconds with a sigma of at most
    # `LIVE.max_clear_sigma_mm`. Frames with a larger sigma count for less time, in proportion to 1 / sigma^2.

    def __init__(self) -> None:
        self._seen_s = np.zeros(16)  # s, time for which each bone was seen clearly
        self.lengths = np.zeros(16)  # (16,) m
        self._since, self.settled, self.seconds = 0.0, False, 0.0

    def needs_frame(self, elapsed: float) -> bool:
        """Count `elapsed` s, and return whether to add the frame; errors of close frames are correlated."""
        self._since += min(elapsed, LIVE.store_interval_s)
        return not self.settled and (self._since >= LIVE.store_interval_s - 1e-6 or not self.seconds)

    def update(self, joints: F64, sigma: F64) -> None:
        """Add a frame: joints (17, 3) m with sigma (17,) mm."""
        bones, variance = joints[_CHILDREN] - joints[_PARENTS], sigma * sigma
        lengths = np.sqrt((bones * bones).sum(axis=-1))
        weight = np.minimum(
            2 * LIVE.max_clear_sigma_mm**2 / np.maximum(variance[_PARENTS] + variance[_CHILDREN], 1e-6), 1
        )
        weight *= (self._since if self.seconds else LIVE.store_interval_s) * (self._seen_s < LIVE.bone_settle_s)
        self._since = 0.0
        other = weight[_MIRRORED]
        total = np.maximum(weight + other, 1e-12)
        mean = (weight * lengths + other * lengths[_MIRRORED]) / total
        self._seen_s = self._seen_s + total / 2
        self.lengths = self.lengths + total / 2 / self._seen_s * (mean - self.lengths)
        self.settled, self.seconds = bool(self._seen_s.min() >= LIVE.bone_settle_s), float(self._seen_s.mean())


class LiveDepth:
    """Filtered distance of a person: the forward pass of `smooth_depths`, with a prior for a large room."""

    def __init__(self) -> None:
        self.depth, self._speed = LIVE.start_depth_m, 0.0
        self.variance, self._both, self._speeds = LIVE.start_depth_sigma_m**2, 0.0, 1.0

    def update(self, depth: float, variance: float, elapsed: float) -> None:
        """Add the next frame's depth (m) and variance (m^2, infinite without information), `elapsed` s later."""
        if elapsed > 0:
            decay = math.exp(-elapsed / DEPTH.speed_memory_s)
            travel_time = DEPTH.speed_memory_s * (1 - decay)
            a, b, c = self.variance, self._both, self._speeds
            self.depth, self._speed = self.depth + travel_time * self._speed, decay * self._speed
            drive = DEPTH.agility_mps15**2
            self.variance = a + 2 * travel_time * b + travel_time * travel_time * c + drive * elapsed**3 / 3
            self._both = decay * (b + travel_time * c) + drive * elapsed**2 / 2
            self._speeds = decay * decay * c + drive * elapsed
        if not math.isfinite(variance):
            return
        total = self.variance + variance
        gain, gain_speed, error = self.variance / total, self._both / total, depth - self.depth
        self.depth, self._speed = self.depth + gain * error, self._speed + gain_speed * error
        self._speeds -= gain_speed * self._both
        self.variance, self._both = (1 - gain) * self.variance, (1 - gain) * self._both


class LiveContacts:
    """Live detector of foot contacts: the method of `pose.world.contacts`, with speeds from past frames only."""

    def __init__(self) -> None:
        self._past: deque[tuple[float, list[list[float]]]] = deque()
        self._standing = [False, False]
        self._since = [-np.inf, -np.inf]  # s, time of the last change of each foot

    def update(self, ankles: F64, heights: list[float], time: float) -> tuple[list[bool], list[float]]:
        """Return whether left and right foot are in contact in the next frame, and both probabilities."""
        now = ankles.tolist()
        probability = []
        while len(self._past) > 1 and self._past[1][0] <= time - LIVE.speed_window_s:
            self._past.popleft()
        for side in range(2):
            if self._past:
                before, places = self._past[0]
                (x, y, z), (px, py, pz) = now[side], places[side]
                speed = ((x - px) ** 2 + (y - py) ** 2 + (z - pz) ** 2) ** 0.5 / (time - before)
            else:
                speed = LIVE.contact_off_speed_mps  # unknown in the first frame
            low = heights[side] < CONTACTS.max_contact_height_m
            in_contact = low and speed < (
                LIVE.contact_off_speed_mps if self._standing[side] else LIVE.contact_on_speed_mps
            )
            if in_contact != self._standing[side] and time - self._since[side] >= CONTACTS.min_contact_s:
                self._standing[side], self._since[side] = in_contact, time
            slow = (speed - (LIVE.contact_on_speed_mps + LIVE.contact_off_speed_mps) / 2) / CONTACTS.speed_width_mps
            near = (heights[side] - CONTACTS.max_contact_height_m) / CONTACTS.height_width_m
            probability.append(_sigmoid(-slow) * _sigmoid(-near))
        self._past.append((time, now))
        return list(self._standing), probability


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-min(max(x, -30.0), 30.0)))
