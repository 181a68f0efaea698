"""Input of all analyses: the motion of one person in world coordinates, and signals derived from it.

World frame: y up, metres, floor at 0. Axes: T time, J the 17 joints of Human3.6M.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pose.structures.skeletons import H36M17
from pose.structures.smooth import zero_phase
from pose.structures.types import F64, Flags

SIDES = ("left", "right")
MAX_GAP_S = 0.25  # longer gaps split the motion
MIN_FRAMES, MIN_DURATION_S = 4, 0.5  # minimum length of a segment
BONE_M = (0.005, 3.0)  # minimum and maximum length of a bone; frames with other lengths are ignored
HEADING_HZ = 1.0


@dataclass(frozen=True)
class Motion:
    """A segment of one person's motion, with T frames and without gaps longer than `MAX_GAP_S`."""

    times: F64  # (T,) s, increasing
    joints: F64  # (T, 17, 3) m, world frame (y up, floor at y = 0)
    sigma: F64  # (T, 17) mm, radius around each joint that contains the true joint with a probability of 68 %
    visible: Flags | None = None  # (T, 17) whether the 2D estimator detected the joint; None if unknown
    # (3,) m, position of the only camera in the world frame; None if unknown or if there are several.
    camera: F64 | None = None
    contacts: F64 | None = None  # (T, 2) contact probability of the left and right foot; None if unknown
    # (T, 2) flexion of the left and right ankle, degrees, NaN where unknown; None if nowhere known.
    ankles: F64 | None = None
    movement: str = ""  # name of the repeated movement that the user gives; empty finds it

    def joint(self, name: str) -> F64:
        """Return the positions (T, 3) in m of one joint of Human3.6M-17, by name."""
        return self.joints[:, H36M17.index(name)]

    @property
    def duration(self) -> float:
        """Seconds from the first to the last frame."""
        return float(self.times[-1] - self.times[0])

    @property
    def rate(self) -> float:
        """Mean frame rate, frames/s."""
        return (len(self.times) - 1) / max(self.duration, 1e-9)

    @cached_property
    def leg_length(self) -> float:
        """Length of a leg, from hip over knee to ankle, m: the median over all frames and both sides."""
        lengths = [
            np.linalg.norm(self.joint(f"{side}_knee") - self.joint(f"{side}_hip"), axis=1)
            + np.linalg.norm(self.joint(f"{side}_ankle") - self.joint(f"{side}_knee"), axis=1)
            for side in SIDES
        ]
        return float(np.median(lengths))

    @cached_property
    def velocity(self) -> F64:
        """(T, 3) m/s, horizontal velocity of the pelvis, low-passed at 1 Hz."""
        velocity = np.gradient(self.joint("pelvis"), self.times, axis=0)
        velocity[:, 1] = 0
        return zero_phase(velocity, self.times, HEADING_HZ)

    @cached_property
    def facing(self) -> F64:
        """Horizontal facing direction from hips and shoulders, (T, 3) unit vectors, low-passed at 1 Hz."""
        across = np.zeros((len(self.times), 3))
        for left, right in (("left_hip", "right_hip"), ("left_shoulder", "right_shoulder")):
            across += self.joint(left) - self.joint(right)
        forward = np.stack([-across[:, 2], np.zeros(len(across)), across[:, 0]], axis=1)  # across x up = forward
        forward = zero_phase(forward, self.times, HEADING_HZ)
        result: F64 = forward / np.maximum(np.linalg.norm(forward, axis=1, keepdims=True), 1e-9)
        return result


def angle_between(a: F64, b: F64) -> F64:
    """Return the angles between vectors (..., 3) of nonzero length, (...) degrees."""
    cosine = (a * b).sum(axis=-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))
    return np.asarray(np.degrees(np.arccos(np.clip(cosine, -1, 1))))


def _is_body(joints: F64) -> Flags:
    """Return (T,) whether all joints (T, 17, 3) m are known and the bone lengths are plausible."""
    parents, children = np.array(H36M17.edges).T
    lengths = np.linalg.norm(joints[:, children] - joints[:, parents], axis=-1)
    found: Flags = ((lengths > BONE_M[0]) & (lengths < BONE_M[1])).all(axis=1)
    return found


def motions(
    times: F64, joints: F64, sigma: F64, visible: Flags | None = None, camera: F64 | None = None,
    contacts: F64 | None = None, ankles: F64 | None = None, min_duration_s: float = MIN_DURATION_S,
) -> list[Motion]:  # fmt: skip
    """Split the motion of one person at gaps longer than `MAX_GAP_S` into segments of `min_duration_s` or more."""
    seen = np.flatnonzero(_is_body(joints.astype(float)))
    if len(seen) < 2:
        return []
    breaks = np.flatnonzero(np.diff(times[seen]) > MAX_GAP_S) + 1
    found = []
    for rows in np.split(seen, breaks):
        if len(rows) < MIN_FRAMES or times[rows[-1]] - times[rows[0]] < min_duration_s:
            continue
        shown = None if visible is None else visible[rows]
        stands = None if contacts is None else contacts[rows].astype(float)
        bent = None if ankles is None else ankles[rows]
        places, sigmas = joints[rows].astype(float), sigma[rows].astype(float)
        found.append(Motion(times[rows], places, sigmas, shown, camera, stands, bent))
    return found
