"""Augmentation with postures that are rare in recordings.

These are sitting, kneeling, lying, standing on one leg, bending, leaning, and holding the hands in front. Legs, trunk
and arms are placed relative to the pelvis or the chest, and sway a little. The path and rotation of the pelvis are
kept, except for the pitch of some postures, and so is the motion of other parts.

Functions change bone vectors in place: `bones` (B, T, 19, 3) m of B sequences with T frames, see
`pose_datasets.bodies`. `rows` holds the indices of the sequences to change. Bone lengths are kept.
"""

from dataclasses import dataclass

import numpy as np

from pose.structures.types import F32, F64, I64
from pose_datasets.bodies import ARMS, CHEST, LEGS, UPPER, pelvis_frame, thorax_frame
from pose_datasets.poses import turn
from pose_datasets.smooth import smooth_noise
from pose_datasets.vectors import norm, perpendicular, unit


@dataclass(frozen=True, kw_only=True)
class PostureConfig:
    """Settings of the augmentation with postures.

    Fractions are of the sequences that do not keep their recorded poses (`SynthesisConfig.natural`).

    Attributes:
        held: Fraction with one of the postures in `POSTURES`, such as sitting or kneeling.
        leaning: Fraction with a leaning trunk: forwards by up to 70 degrees, sideways and backwards by up to 40.
        reaching: Fraction with a hand in front of the trunk, at the face or hips, or stretched forwards; separate for
            each arm.
    """

    held: float = 0.25
    leaning: float = 0.25
    reaching: float = 0.3


@dataclass(frozen=True, slots=True)
class Leg:
    """Ranges of the angles of a leg in a posture, (minimum, maximum) in degrees."""

    hip: tuple[float, float]  # flexion of the thigh; negative for extension backwards
    knee: tuple[float, float]  # flexion of the knee; 0 is straight
    abduction: tuple[float, float] = (-3.0, 15.0)  # angle of the thigh away from the other leg
    outward_rotation: tuple[float, float] = (-10.0, 15.0)  # outward rotation of the plane in which the knee flexes


@dataclass(frozen=True, slots=True)
class Posture:
    """Ranges of the angles of a posture, (minimum, maximum) in degrees."""

    first: Leg  # ranges of the angles of one leg, the left or the right with equal probability
    second: Leg  # ranges of the angles of the other leg
    lean: tuple[float, float] = (-10.0, 20.0)  # forward lean of the trunk relative to the pelvis
    pitch: tuple[float, float] = (-5.0, 10.0)  # forward rotation of the whole body


def _both(hip: tuple[float, float], knee: tuple[float, float], abduction: tuple[float, float] = (-3, 15),
          outward_rotation: tuple[float, float] = (-10, 15), **trunk: tuple[float, float]) -> Posture:  # fmt: skip
    """Return a posture with the same ranges for both legs."""
    leg = Leg(hip, knee, abduction, outward_rotation)
    return Posture(leg, leg, **trunk)


_STANDING = Leg((-5, 8), (0, 8))

POSTURES = {
    "on a chair": _both((65, 110), (60, 115), (0, 25), lean=(-15, 40)),
    "legs stretched": _both((75, 110), (0, 45), (0, 35), lean=(-25, 25)),
    "cross-legged": _both((75, 105), (100, 140), (20, 50), (30, 65), lean=(-5, 30)),
    "knees drawn up": _both((95, 130), (80, 140), (0, 20), lean=(-10, 30)),
    "upright on the knees": _both((-5, 15), (80, 110), lean=(-10, 25)),
    "on the heels": _both((55, 110), (125, 155), lean=(-10, 45)),
    "on one knee": Posture(Leg((70, 105), (75, 115)), Leg((-10, 15), (80, 115))),
    "lunging": Posture(Leg((50, 105), (50, 105)), Leg((-30, 5), (0, 45)), lean=(-10, 35)),
    "on one leg": Posture(_STANDING, Leg((10, 110), (10, 135), (-5, 35)), lean=(-15, 35)),
    "leg behind": Posture(_STANDING, Leg((-35, 0), (0, 120)), lean=(0, 80)),
    "squatting": _both((60, 125), (70, 150), (0, 35), (0, 35), lean=(10, 50)),
    "bent over": _both((-5, 15), (0, 25), (0, 25), lean=(40, 110)),
    "on all fours": _both((70, 110), (70, 110), lean=(-10, 15), pitch=(70, 100)),
    "on the belly": _both((-10, 10), (0, 60), lean=(-35, 5), pitch=(75, 100)),
    "on the back": _both((-5, 70), (0, 110), (0, 30), lean=(-5, 40), pitch=(-100, -75)),
}


def take_postures(rng: np.random.Generator, bones: F32, times: F64, config: PostureConfig) -> None:
    """Change the postures of some sequences in place: seated, kneeling or lying, leaning, or hands in front."""
    for share, pose in ((config.held, _hold), (config.leaning, _lean)):
        if len(rows := _some(rng, len(bones), share)):
            pose(rng, bones, times, rows)
    for arm, outward in zip(ARMS, (1, -1), strict=True):
        if len(rows := _some(rng, len(bones), config.reaching)):
            _reach(rng, bones, times, rows, arm, outward)


def _some(rng: np.random.Generator, batch: int, share: float) -> I64:
    """Draw the row indices of a fraction `share` of a batch. A fraction of 0 draws no random numbers."""
    return np.flatnonzero(rng.random(batch) < share) if share else np.zeros(0, np.int64)


_LEG_RANGES = np.radians(
    [
        [[leg.hip, leg.knee, leg.abduction, leg.outward_rotation] for leg in (posture.first, posture.second)]
        for posture in POSTURES.values()
    ]
)
_TRUNK_RANGES = np.radians([[posture.lean, posture.pitch] for posture in POSTURES.values()])


def _hold(rng: np.random.Generator, bones: F32, times: F64, rows: I64) -> None:
    """Give sequences a random posture of `POSTURES`."""
    count = len(rows)
    posture = rng.integers(len(POSTURES), size=count)
    swapped = rng.random(count) < 0.5
    sway = np.float32(np.radians(4)) * smooth_noise(rng, times[rows], 6, 0.6)
    frame = pelvis_frame(bones[rows])
    left, up, forward = frame[..., 0], frame[..., 1], frame[..., 2]
    for side, leg in enumerate(LEGS):
        low, high = np.moveaxis(_LEG_RANGES[posture, np.where(swapped, 1 - side, side)], -1, 0)
        angles = rng.uniform(low, high).astype(np.float32)[:, None]
        hip, abduction = angles[..., 0] + sway[..., 3 * side], angles[..., 2] + sway[..., 3 * side + 1]
        knee = np.maximum(angles[..., 1] + sway[..., 3 * side + 2], 0)
        out = left if side == 0 else -left
        # The thigh is flexed and then abducted; the knee flexes in a plane that is rotated outwards.
        ahead = np.sin(hip)[..., None] * forward - np.cos(hip)[..., None] * up
        thigh = np.cos(abduction)[..., None] * ahead + np.sin(abduction)[..., None] * out
        back = -np.cos(hip)[..., None] * forward - np.sin(hip)[..., None] * up
        outward_rotation = angles[..., 3]
        fold = unit(
            perpendicular(np.cos(outward_rotation)[..., None] * back - np.sin(outward_rotation)[..., None] * out, thigh)
        )
        shank = np.cos(knee)[..., None] * thigh + np.sin(knee)[..., None] * fold
        for joint, direction in zip(leg, (thigh, shank), strict=True):
            bones[rows, :, joint] = norm(bones[rows, :, joint])[..., None] * direction
    low, high = np.moveaxis(_TRUNK_RANGES[posture], -1, 0)
    lean, pitch = rng.uniform(low, high).astype(np.float32).T[..., None, None]
    turn(bones, rows, UPPER, left * lean)
    turn(bones, rows, list(range(1, 19)), left * pitch)


def _lean(rng: np.random.Generator, bones: F32, times: F64, rows: I64) -> None:
    """Lean the trunk about a random horizontal axis by an angle that varies over time."""
    # In half of the sequences the arms keep their direction, entirely or partly.
    count = len(rows)
    frame = pelvis_frame(bones[rows])
    way = rng.uniform(-np.pi, np.pi, (count, 1, 1)).astype(np.float32)
    max_angle = np.radians(np.where(np.abs(way) < np.pi / 4, 70, 40)).astype(np.float32)
    size = max_angle * rng.uniform(0.15, 1, (count, 1, 1)).astype(np.float32)
    size = size * np.clip(np.float32(0.85) + np.float32(0.25) * smooth_noise(rng, times[rows], 1, 0.4), 0, 1)
    vector = size * (np.cos(way) * frame[..., 0] + np.sin(way) * frame[..., 2])
    curl = rng.uniform(0, 0.5, (count, 1, 1)).astype(np.float32)
    turn(bones, rows, UPPER, vector * (1 - curl))
    turn(bones, rows, CHEST, vector * curl)
    hanging = rng.random((count, 1, 1)) < 0.5
    for arm in ARMS:
        turn(bones, rows, arm, -vector * (hanging * rng.uniform(0.5, 1, (count, 1, 1))).astype(np.float32))


def _reach(rng: np.random.Generator, bones: F32, times: F64, rows: I64, arm: list[int], outward: int) -> None:
    """Place the hand of an arm (outward 1: left, -1: right) in front of the body, with the elbow down and out."""
    count = len(rows)
    upper, fore = (norm(bones[rows, :, joint])[..., None] for joint in arm)
    length = upper + fore
    frame = thorax_frame(bones[rows])
    shoulder = bones[rows, :, arm[0] - 1]
    # Hand position relative to the thorax in arm lengths (left, up, forward), from the hips to above the face.
    near = np.stack(
        [rng.normal(0.05 * outward, 0.3, count), rng.uniform(-0.9, 0.45, count), rng.uniform(0.25, 0.8, count)]
    )
    far = np.stack(
        [rng.normal(0.2 * outward, 0.35, count), rng.normal(-0.1, 0.35, count), rng.uniform(0.9, 1.3, count)]
    )
    place = np.where(rng.random(count) < 0.7, near, far).astype(np.float32).T[:, None]
    place = place + np.float32(0.04) * smooth_noise(rng, times[rows], 3, 0.9)
    hand = (frame @ (place * length)[..., None])[..., 0] - shoulder
    distance = norm(hand)[..., None]
    along = hand / np.maximum(distance, 1e-3)
    distance = np.clip(distance, _reached(upper, fore, 145), _reached(upper, fore, 3))
    pole = rng.normal((0.5 * outward, -1, -0.2), 0.35, (count, 3)).astype(np.float32)
    elbow = unit(perpendicular((frame @ pole[:, None, :, None])[..., 0], along))
    x = (distance**2 + upper**2 - fore**2) / (2 * distance)
    bones[rows, :, arm[0]] = x * along + np.sqrt(np.maximum(upper**2 - x**2, 0)) * elbow
    bones[rows, :, arm[1]] = distance * along - bones[rows, :, arm[0]]


def _reached(first: F32, second: F32, degrees: float) -> F32:
    """Return the distance between the ends of two connected bones with a flexion of `degrees` at their joint."""
    cosine = np.float32(np.cos(np.radians(degrees)))
    reached: F32 = np.sqrt(first**2 + second**2 + 2 * cosine * first * second)
    return reached
