"""Rotations of a character's hand and finger bones, from hand points."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.body.character.rest import Character
from pose.body.fingers import FINGER_PARENTS, finger_quaternions, palm_quaternions
from pose.structures import rotations
from pose.structures.hand_points import INDEX_KNUCKLE, LITTLE_KNUCKLE, MIDDLE_KNUCKLE, POINTS
from pose.structures.rotations import unit
from pose.structures.types import F64

_SIDES = ("Left", "Right")
_FINGERS = ("Thumb", "Index", "Middle", "Ring", "Pinky")
# Fraction of the hand's twist that is applied to the forearm; the rest stays in the wrist. With one bone for the
# forearm, half distorts elbow and wrist least.
FOREARM_SHARE = 0.5
# Middle of the range of twists, radians about x; twists are wrapped to within 180 degrees of it. 0 is the palm down in
# the T-pose. The forearm alone turns to -180 degrees, the palm up (AAOS, Joint Motion: Method of Measuring and
# Recording, 1965). With the twist of the upper arm, which lifted joints do not show, the palm turns to +100 degrees.
_NEUTRAL = np.radians(-40.0)


@dataclass(frozen=True, slots=True)
class HandRotations:
    """Rotations of both hands in T frames; NaN where a hand is not detected."""

    palms: F64  # (T, 2, 4) quaternions (w, x, y, z) of the left and right hand bone in file axes (y up)
    fingers: F64  # (T, 2, 15, 4) quaternions of the left and right finger bones relative to their parent bones

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Mask (T, 2) of the frames in which the left and the right hand are detected."""
        return np.asarray(np.isfinite(self.palms[..., 0]))


def finger_bones(side: int) -> list[str]:
    """Return the names of the 15 finger bones of a hand, in the order of `FINGER_NAMES`."""
    return [f"{_SIDES[side]}Hand{finger}{part}" for finger in _FINGERS for part in (1, 2, 3)]


def hands_of(character: Character, hand_points: F64) -> HandRotations:
    """Fit hand rotations of a character to hand points (T, 2, 21, 3) m in file axes; NaN is undetected."""
    palms = np.full((*hand_points.shape[:2], 4), np.nan)
    fingers = np.full((*hand_points.shape[:2], len(FINGER_PARENTS), 4), np.nan)
    for side in range(2):
        seen = np.isfinite(hand_points[:, side]).all(axis=(1, 2))
        if seen.any():
            points = hand_points[seen, side]
            rest, directions = _rest_hand(character, side)
            own = rotations.inverse(palm_quaternions(rest[None], side))
            palms[seen, side] = palm = rotations.multiply(palm_quaternions(points, side), own)
            fingers[seen, side] = finger_quaternions(points, palm, directions)
    return HandRotations(palms, fingers)


def _rest_hand(character: Character, side: int) -> tuple[F64, F64]:
    """Return the hand points (21, 3) m in the T-pose, NaN except wrist and knuckles, and bone directions (15, 3)."""
    model, heads = character.model, character.heads
    points, directions = np.full((POINTS, 3), np.nan), np.empty((len(FINGER_PARENTS), 3))
    points[0] = heads[model.index(f"{_SIDES[side]}Hand")]
    for knuckle, finger in ((INDEX_KNUCKLE, "Index"), (MIDDLE_KNUCKLE, "Middle"), (LITTLE_KNUCKLE, "Pinky")):
        points[knuckle] = heads[model.index(f"{_SIDES[side]}Hand{finger}1")]
    for at, name in enumerate(finger_bones(side)):
        bone = model.index(name)
        # The last bone of a finger has no child; its direction is that of its vertices.
        own = (model.bones == bone) & (model.weights > 0.5)
        end = heads[bone + 1] if at % 3 < 2 else character.vertices[own.any(axis=1)].mean(axis=0)
        directions[at] = unit(end - heads[bone])
    return points, directions


def interpolated(quaternions: F64, seen: NDArray[np.bool_]) -> F64:
    """Fill quaternions (T, ..., 4) of missing frames by slerp, constant at the ends; identity if none is valid."""
    known = np.flatnonzero(seen)
    if len(known) == len(seen):
        return quaternions
    if not len(known):
        return np.broadcast_to(rotations.IDENTITY, quaternions.shape).copy()
    at = np.arange(len(seen))
    later = np.clip(np.searchsorted(known, at), 0, len(known) - 1)
    earlier = np.clip(np.searchsorted(known, at, side="right") - 1, 0, len(known) - 1)
    first, last = known[earlier], known[later]
    fraction = np.where(last > first, (at - first) / np.maximum(last - first, 1), 0.0)
    fraction = fraction.reshape(-1, *[1] * (quaternions.ndim - 2))
    return rotations.slerp(quaternions[first], quaternions[last], np.broadcast_to(fraction, quaternions.shape[:-1]))


def twist_of(quaternions: F64) -> F64:
    """Compute the twist (T,) in rad of a hand about x, the axis of its bone, from (T, 4) quaternions."""
    angle = 2 * np.arctan2(quaternions[:, 1], quaternions[:, 0]) - _NEUTRAL
    twist: F64 = _NEUTRAL + angle - 2 * np.pi * np.round(angle / (2 * np.pi))
    return twist
