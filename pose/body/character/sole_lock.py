"""Feet on the floor: the sole of a character in contact neither floats, nor sinks in, nor slides.

Contacts and floor of the world are those of the ankles. The sole of the character is lower by an ankle height that
differs from person to person, and it rolls from heel to toe. The body is therefore raised by a constant, and each ankle
is moved so that the part of the sole that bears the weight stays where it is. Where legs are too short for that, the
body is lowered.
"""

from dataclasses import dataclass

import numpy as np

from pose.body.character.rest import Character
from pose.body.soles import smoothed
from pose.body.timeline import stretches
from pose.structures import rotations
from pose.structures.rotations import cross
from pose.structures.skeletons import H36M17
from pose.structures.two_bones import reach
from pose.structures.types import F64

MIN_CONTACT_PROBABILITY = 0.5
ON_FLOOR_M = 0.25  # soles this close to y = 0 stand on the floor; others stand on something else, at their own height
SOLE_M = 0.02  # vertices of a foot up to this height in the T-pose belong to the sole
BEARING_M = 0.01  # heights above the lowest part of the sole over which the load decreases
_STRAIGHT_DEGREES = 6.0  # smallest bend of a knee with which an ankle is reached exactly (`pose.structures.two_bones`)
_MAX_LOWERING_M = 0.15
_LOWERING_S = 0.2  # time around a frame in which the body is lowered for it
RELEASE_S = 0.2  # time in which a correction fades before and after a contact
_ANKLES = [H36M17.index(f"{side}_ankle") for side in ("left", "right")]
_BONES = ("LeftFoot", "RightFoot"), ("LeftToeBase", "RightToeBase")


@dataclass(frozen=True, slots=True)
class Soles:
    """The soles of a character in the T-pose, relative to the ankles."""

    points: tuple[F64, F64]  # left and right, (S, 3) m


def soles_of(character: Character) -> Soles:
    """Return the vertices of the soles."""
    model, found = character.model, []
    for foot, toes in zip(*_BONES, strict=True):
        share = (np.isin(model.bones, [model.index(foot), model.index(toes)]) * model.weights).sum(axis=1)
        own = (share > 0.9) & (character.vertices[:, 1] < SOLE_M)
        found.append(character.vertices[own] - character.heads[model.index(foot)])
    return Soles((found[0], found[1]))


def rise_of(points: F64, feet: F64, contacts: F64, soles: Soles) -> float:
    """Return the height in m by which a body is raised so that its soles stand on the floor; 0 without contacts."""
    lowest = []
    for side in range(2):
        on = contacts[:, side] >= MIN_CONTACT_PROBABILITY
        low = _placed(points[on], feet[on], soles, side)[..., 1].min(axis=1)
        lowest.append(low[np.abs(low) < ON_FLOOR_M])
    together = np.concatenate(lowest)
    return -float(np.median(together)) if len(together) else 0.0


def locked(points: F64, feet: F64, contacts: F64, times: F64, soles: Soles) -> F64:
    """Return joints (T, 17, 3) m in world coordinates whose ankles hold the soles in place during contacts.

    Args:
        points: (T, 17, 3) m, the joints.
        feet: (T, 2, 2, 3) unit vectors from heel to toe and up from the sole.
        contacts: (T, 2) contact probabilities of the left and right foot.
        times: (T,) s.
        soles: The soles of the character.
    """
    result = points.copy()
    for side in range(2):
        sole = _placed(points, feet, soles, side)
        corrections, weights = np.zeros((len(points), 3)), np.zeros(len(points))
        for first, last in stretches(contacts[:, side] >= MIN_CONTACT_PROBABILITY):
            part = slice(first, last + 1)
            held = _held(sole[part])
            before, after = times < times[first], times > times[last]
            fade = np.ones(len(times))
            fade[before] = _faded(times[first] - times[before])
            fade[after] = _faded(times[after] - times[last])
            own = held[np.clip(np.arange(len(times)) - first, 0, last - first)]
            corrections += fade[:, None] * own
            weights += fade
        moved = corrections / np.maximum(weights, 1)[:, None]
        low = sole[..., 1].min(axis=1) + moved[:, 1]
        moved[:, 1] += np.where(np.abs(low) < ON_FLOOR_M, np.maximum(-low, 0), 0)
        result[:, _ANKLES[side]] += moved
    return result


def lowering(hips: F64, ankles: F64, contacts: F64, times: F64, lengths: tuple[float, float]) -> F64:
    """Return by how much (T,) m to lower a body with hips (T, 2, 3) so that its legs reach feet in contact.

    `ankles` (T, 2, 3) m are where they shall be, `lengths` those of thigh and shank, m.
    """
    apart = hips - ankles
    far = reach(*lengths, _STRAIGHT_DEGREES)
    height = np.sqrt(np.maximum(far**2 - apart[..., 0] ** 2 - apart[..., 2] ** 2, 0))
    above = np.where(contacts >= MIN_CONTACT_PROBABILITY, apart[..., 1] - height, 0)
    needed = np.clip(above, 0, _MAX_LOWERING_M).max(axis=1)
    around = np.searchsorted(times, [times - _LOWERING_S, times + _LOWERING_S])
    held = np.array([needed[first : max(last, first + 1)].max() for first, last in around.T])
    return smoothed(held, times, _LOWERING_S / 3)


def _placed(points: F64, feet: F64, soles: Soles, side: int) -> F64:
    """Return the vertices of a sole (T, S, 3) m at the ankle."""
    along, above = feet[:, side, 0], feet[:, side, 1]
    foot = rotations.from_axes(cross(above, along), above, along)
    return np.asarray(points[:, _ANKLES[side], None] + rotations.rotate(foot[:, None], soles.points[side][None]))


def _held(sole: F64) -> F64:
    """Return the translations (n, 3) m that hold a sole (n, S, 3) in contact in place."""
    height = sole[..., 1]
    low = height.min(axis=1)
    load = np.exp(-((height - low[:, None]) / BEARING_M))
    load /= load.sum(axis=1, keepdims=True)
    total = load.sum(axis=0)
    places = (load[..., None] * sole).sum(axis=0) / np.maximum(total, 1e-9)[:, None]  # where each part bears the weight
    translation = (load[..., None] * (places - sole)).sum(axis=1)
    level = float(np.median(low))
    translation[:, 1] = (0.0 if abs(level) < ON_FLOOR_M else level) - low
    return np.asarray(translation)


def _faded(seconds: F64) -> F64:
    share = np.clip(1 - seconds / RELEASE_S, 0, 1)
    return np.asarray(share * share * (3 - 2 * share))
