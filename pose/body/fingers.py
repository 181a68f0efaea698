"""Finger bones and their rotations, from hand points.

Rest pose: the T-pose of `pose.body.skeleton`, palms down, fingers straight along the arm. The palm is rigid, so the
palm points determine the rotation of the wrist. Each finger bone gets the shortest rotation relative to its parent.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from pose.body.motions import AnimatedSkeleton
from pose.body.selection import CHUNK
from pose.body.skeleton import NAMES, PARENTS, frame
from pose.body.timeline import TrackSpan
from pose.body.tracks import Track
from pose.structures import rotations
from pose.structures.hand_points import FINGERS, INDEX_KNUCKLE, LITTLE_KNUCKLE, MIDDLE_KNUCKLE, SIDES, WRIST
from pose.structures.rotations import cross, dot, unit
from pose.structures.types import F64

PARTS = ("proximal", "middle", "distal")
# One hand: the wrist, then three joints of each finger from the palm to the tip.
FINGER_NAMES = tuple(f"{finger}_{part}" for finger in FINGERS for part in PARTS)
# 0 is the wrist, and k > 0 is finger joint k - 1.
FINGER_PARENTS = tuple(0 if at % 3 == 0 else at for at in range(len(FINGER_NAMES)))
WRIST_JOINTS = tuple(NAMES.index(f"{side}_wrist") for side in SIDES)
# Hand points at the finger joints.
_JOINTS = np.array([4 * finger + part + 1 for finger in range(5) for part in range(3)])
_THUMB_REST = np.array([np.cos(np.radians(40)), 0.0, np.sin(np.radians(40))])


@dataclass(frozen=True, slots=True)
class HandBones:
    """The constant bone lengths of one person's hands."""

    # (2, 15, 3) m, vector from the parent joint to each finger joint in the rest pose, in file axes (y up). The first
    # axis is left, right; the second is in the order of `FINGER_NAMES`.
    offsets: F64
    tips: F64  # (2, 5, 3) m, vector from the last joint of each finger to its tip, thumb to little finger


def hand_quaternions(places: F64, forearms: F64) -> F64:
    """Return wrist and finger quaternions (T, 2, 16, 4) relative to the parent, NaN where points are NaN."""
    quaternions = np.full((*places.shape[:2], 1 + len(_JOINTS), 4), np.nan)
    for side in range(2):
        known = np.isfinite(places[:, side]).all(axis=(1, 2))
        if known.any():
            quaternions[known, side] = _quaternions_of_hand(places[known, side], forearms[known, side], side)
    return quaternions


def _quaternions_of_hand(points: F64, forearm: F64, side: int) -> F64:
    outward = 1.0 if side == 0 else -1.0
    palm = palm_quaternions(points, side)
    rest = np.array([_rest(joint, outward) for joint in _JOINTS])
    quaternions = finger_quaternions(points, palm, rest)
    return np.concatenate([rotations.multiply(rotations.inverse(forearm), palm)[:, None], quaternions], axis=1)


def finger_quaternions(points: F64, palm: F64, rest: F64) -> F64:
    """Compute the shortest rotations (T, 15, 4), relative to parents, that align finger bones with hand points."""
    global_quaternions = np.empty((len(points), 1 + len(_JOINTS), 4))
    quaternions = np.empty((len(points), len(_JOINTS), 4))
    global_quaternions[:, 0] = palm
    for at, joint in enumerate(_JOINTS):
        parent = global_quaternions[:, FINGER_PARENTS[at]]
        direction = unit(points[:, joint + 1] - points[:, joint])
        quaternions[:, at] = rotations.shortest_rotation(
            rest[at], rotations.rotate(rotations.inverse(parent), direction)
        )
        global_quaternions[:, at + 1] = rotations.multiply(parent, quaternions[:, at])
    return quaternions


def _rest(joint: int, outward: float) -> F64:
    """Return the rest-pose direction (3,) of the bone at a hand point; outward is 1 for left, -1 for right."""
    along = _THUMB_REST if joint < INDEX_KNUCKLE else np.array([1.0, 0.0, 0.0])
    result: F64 = along * np.array([outward, 1, 1])
    return result


def palm_quaternions(points: F64, side: int) -> F64:
    """Return the orientation (T, 4) of the palm: axes of the palm to file axes (y up)."""
    # The axes are those of the T-pose with the palm down: x along the left arm, or against the right arm, y out of the
    # back of the hand, z towards the index finger.
    along = points[:, MIDDLE_KNUCKLE] - points[:, WRIST]
    across = points[:, INDEX_KNUCKLE] - points[:, LITTLE_KNUCKLE]
    x = unit(along if side == 0 else -along)
    z = unit(across - dot(across, x)[..., None] * x)
    lost = dot(z, z) < 0.5
    if lost.any():
        z[lost] = frame(x[lost], np.broadcast_to([0.0, 1.0, 0.0], x[lost].shape))[2]
    return rotations.from_axes(x, cross(z, x), z)


class Fingers:
    """The fingers of one track, in addition to the body's `AnimatedSkeleton`."""

    def __init__(self, track: Track, bones: AnimatedSkeleton) -> None:
        self._track, self._bones = track, bones
        self.body = _fit(self._palms_and_lengths())  # bone lengths of the hands
        self._last = np.tile(rotations.IDENTITY, (2, 1 + len(_JOINTS), 1))

    @classmethod
    def of(cls, track: Track, bones: AnimatedSkeleton) -> "Fingers | None":
        """Return the fingers of a person, or None if no hand was detected in the track."""
        if track.recording.table.hand_scores is None:
            return None
        fingers = cls(track, bones)
        return fingers if np.isfinite(fingers.body.offsets).all() else None

    def quaternions(self, span: TrackSpan, body: F64) -> F64:
        """Return quaternions (n, 2, 16, 4) of wrist and fingers; pass spans in order, undetected hands are kept."""
        global_quaternions = _global_quaternions(body)
        forearms = np.stack([global_quaternions[:, PARENTS[joint]] for joint in WRIST_JOINTS], axis=1)
        at = np.arange(span.start, span.start + len(span.times))
        quaternions = hand_quaternions(self._track.space.to_file(self._track.hands(at).points), forearms)
        for row in range(len(quaternions)):
            known = np.isfinite(quaternions[row]).all(axis=(1, 2))
            quaternions[row, ~known] = self._last[~known]
            self._last = quaternions[row]
        return quaternions

    def global_quaternions(self, span: TrackSpan, body: F64) -> F64:
        """Return `quaternions`, but in file axes."""
        hands = self.quaternions(span, body).copy()
        for side, joint in enumerate(WRIST_JOINTS):
            forearm = _global_quaternions(body)[:, PARENTS[joint]]
            hands[:, side, 0] = rotations.multiply(forearm, hands[:, side, 0])
            for at, parent in enumerate(FINGER_PARENTS, start=1):
                hands[:, side, at] = rotations.multiply(hands[:, side, parent], hands[:, side, at])
        return hands

    def _palms_and_lengths(self) -> Iterator[F64]:
        for start in range(0, len(self._track), CHUNK):
            at = np.arange(start, min(start + CHUNK, len(self._track)))
            yield self._track.space.to_file(self._track.hands(at).points)
            self._track.recording.release()


def _global_quaternions(quaternions: F64) -> F64:
    """Convert rotations (n, 17, 4) relative to the parents to rotations in file axes."""
    global_quaternions = quaternions.copy()
    for joint, parent in enumerate(PARENTS[1:], start=1):
        global_quaternions[:, joint] = rotations.multiply(global_quaternions[:, parent], quaternions[:, joint])
    return global_quaternions


def _fit(portions: Iterable[F64]) -> HandBones:
    """Return the median bones of hands (T, 2, 21, 3) m in file axes. Both hands are pooled; the right is mirrored."""
    palms, lengths = [], []
    for places in portions:
        for side, mirror in enumerate((1.0, -1.0)):
            points = places[:, side][np.isfinite(places[:, side]).all(axis=(1, 2))]
            if not len(points):
                continue
            back = rotations.inverse(palm_quaternions(points, side))
            knuckles = rotations.rotate(back[:, None], points[:, _JOINTS[::3]] - points[:, :1])
            palms.append(knuckles * np.array([mirror, 1, 1]))
            steps = points[:, _JOINTS + 1] - points[:, _JOINTS]
            lengths.append(np.linalg.norm(steps, axis=-1).reshape(-1, 5, 3))
    if not palms:
        return HandBones(np.full((2, 15, 3), np.nan), np.full((2, 5, 3), np.nan))
    base, length = np.median(np.concatenate(palms), axis=0), np.median(np.concatenate(lengths), axis=0)
    offsets, tips = np.empty((2, 5, 3, 3)), np.empty((2, 5, 3))
    for side, outward in enumerate((1.0, -1.0)):
        offsets[side, :, 0] = base * np.array([outward, 1, 1])
        for finger in range(5):
            rest = _rest(1 + 4 * finger, outward)
            offsets[side, finger, 1:] = length[finger, :2, None] * rest
            tips[side, finger] = length[finger, 2] * rest
    return HandBones(offsets.reshape(2, 15, 3), tips)
