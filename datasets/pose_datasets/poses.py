"""Augmentation of poses: rotated trunks and limbs, bent knees and elbows, and folded, tilted and spinning bodies.

Recordings contain mostly walking; people also sit, climb, stretch and fall. All changes are smooth in time and keep
bone lengths. Knees and elbows bend in their anatomical direction only.

Most functions change bone vectors in place: `bones` (B, T, 19, 3) m of B sequences with T frames, see
`pose_datasets.bodies`. `rows` holds the indices of the sequences to change. A limb is a list of two bones, named by the
points at their far ends, such as [knee, ankle].
"""

from dataclasses import dataclass

import numpy as np

from pose.structures.types import F32, F64, I64
from pose_datasets import rotations
from pose_datasets.bodies import ARMS, CHEST, HEAD, LEGS, UPPER, pelvis_frame, thorax_frame
from pose_datasets.smooth import smooth_noise
from pose_datasets.vectors import cross, dot, norm, perpendicular, unit


@dataclass(frozen=True, kw_only=True)
class PoseConfig:
    """Settings of the augmentation of poses.

    `straight`, `bent` and `whole_range` are fractions of all sequences. Other fractions are of the sequences that do
    not keep their recorded poses (`SynthesisConfig.natural`). Rotations are the maximum about each axis, in degrees,
    and about two standard deviations.

    Attributes:
        turned: Fraction with rotated parts of the body, by `trunk` to `elbow`.
        trunk: Rotation of the trunk above the pelvis, and of the chest, degrees.
        head: Rotation of the head, degrees.
        hip: Rotation of a leg at the hip, degrees.
        shoulder: Rotation of an arm at the shoulder, degrees.
        knee: Change of a knee's flexion, degrees.
        elbow: Change of an elbow's flexion, degrees.
        straightened: Fraction with straighter knees. Recordings show knees 10 to 30 degrees too bent in standing
            people.
        folded: Fraction with flexed hips and knees: seated, squatting, kneeling, kicking, bent over.
        raised: Fraction with a raised arm, mostly over the head; separate for each arm.
        tilted: Fraction with a tilted body: lying, upside down, or in any orientation.
        spun: Fraction whose body rotates during the sequence.
        straight: Fraction with straightened limbs (`flex_limbs`).
        bent: Fraction with bent limbs (`flex_limbs`).
        whole_range: Fraction with an elbow or knee at any angle; separate for each limb.
    """

    turned: float = 0.55
    trunk: float = 20.0
    head: float = 25.0
    hip: float = 30.0
    shoulder: float = 60.0
    knee: float = 40.0
    elbow: float = 60.0
    straightened: float = 0.5
    folded: float = 0.25
    raised: float = 0.35
    tilted: float = 0.25
    spun: float = 0.04
    straight: float = 0.4
    bent: float = 0.2
    whole_range: float = 0.0


def vary_poses(rng: np.random.Generator, bones: F32, times: F64, config: PoseConfig) -> None:
    """Change the poses of some sequences (B, T, 19, 3) in place: straighten, fold, rotate parts, raise arms."""
    rows = _some(rng, len(bones), config.straightened)
    if len(rows):
        _straighten_knees(rng, bones, rows)
    rows = _some(rng, len(bones), config.folded)
    if len(rows):
        _fold(rng, bones, times, rows)
    _turn_parts(rng, bones, times, config)
    for arm in ARMS:
        rows = _some(rng, len(bones), config.raised)
        if len(rows):
            _raise_arm(rng, bones, times, rows, arm)


def flex_limbs(rng: np.random.Generator, bones: F32, times: F64, config: PoseConfig) -> None:
    """Straighten the limbs of some sequences (B, T, 19, 3) and bend those of others, in place."""
    # The direction between the ends of a limb is kept; only their distance changes. Straightening subtracts d exp(-(f /
    # 80)^2) from the flexion f in degrees. Here d, at most 25, is the flexion that the straightest fifth (arms) or
    # third (legs) of the frames does not exceed. Bending adds up to 80 degrees to bent limbs and almost none to
    # straight ones, up to a flexion of 150 degrees.
    if config.straight + config.bent == 0:
        return
    draw = rng.random(len(bones))
    straight = np.flatnonzero(draw < config.straight)
    bent = np.flatnonzero((draw >= config.straight) & (draw < config.straight + config.bent))
    for limb, percentile, floor in ((LEGS[0], 30, 2), (LEGS[1], 30, 2), (ARMS[0], 20, 4), (ARMS[1], 20, 4)):
        rows = straight[rng.random(len(straight)) < 0.85]
        if len(rows):
            flexed = _flexion(bones, rows, limb)
            excess = np.percentile(flexed, percentile, axis=1, keepdims=True) - floor  # keeps 2 or 4 degrees
            less = np.clip(excess, 0, 25).astype(np.float32) * np.exp(-((flexed / 80) ** 2))
            # Smooth near straight; never above the original flexion, as a straight limb does not determine its plane.
            _flex(bones, rows, limb, np.minimum(flexed, 2 * np.logaddexp(np.float32(0), (flexed - less) / 2)))
        rows = bent[rng.random(len(bent)) < 0.7]
        if len(rows):
            flexed = _flexion(bones, rows, limb)
            swell = np.clip(0.75 + 0.35 * smooth_noise(rng, times[rows], 1, 0.5)[..., 0], 0, 1)
            more = rng.uniform(20, 80, (len(rows), 1)).astype(np.float32) * swell * (1 - np.exp(-((flexed / 45) ** 2)))
            _flex(bones, rows, limb, np.minimum(flexed + more, np.maximum(flexed, 150)))


def bend_over_whole_range(rng: np.random.Generator, bones: F32, times: F64, config: PoseConfig) -> None:
    """Bend a fraction `whole_range` of elbows and knees to uniform angles from 0 to 150 degrees, in place."""
    # The angle varies over time by about 15 degrees. Upper arms and thighs do not move.
    for limbs, bend in ((ARMS, bend_elbow), (LEGS, bend_knee)):
        for limb in limbs:
            rows = _some(rng, len(bones), config.whole_range)
            if len(rows):
                goal = rng.uniform(0, 150, (len(rows), 1)) + 15 * smooth_noise(rng, times[rows], 1, 0.5)[..., 0]
                goal = np.clip(goal, 0, 150).astype(np.float32)
                bend(bones, rows, limb, np.radians(goal - _flexion(bones, rows, limb)))


def _flexion(bones: F32, rows: I64, limb: list[int]) -> F32:
    """Return the flexion (rows, T) of a limb in degrees; 0 is straight."""
    first, second = bones[rows, :, limb[0]], bones[rows, :, limb[1]]
    return np.degrees(np.arctan2(norm(cross(first, second)), dot(first, second)))


def _flex(bones: F32, rows: I64, limb: list[int], degrees: F32) -> None:
    """Set a limb's flexion to `degrees` (rows, T), in place, with the same plane and direction of its ends."""
    first, second = bones[rows, :, limb[0]], bones[rows, :, limb[1]]
    near, far = norm(first), norm(second)
    along = unit(first + second)
    angle = np.radians(degrees)
    reach = np.maximum(np.sqrt(near**2 + far**2 + 2 * near * far * np.cos(angle)), 1e-4)
    off = (near * far * np.sin(angle) / reach)[..., None] * unit(perpendicular(first, along))
    bones[rows, :, limb[0]] = ((near**2 + near * far * np.cos(angle)) / reach)[..., None] * along + off
    bones[rows, :, limb[1]] = ((far**2 + near * far * np.cos(angle)) / reach)[..., None] * along - off


def random_tilts(rng: np.random.Generator, times: F64, config: PoseConfig) -> F32:
    """Draw rotations (B, T, 3, 3) of the body in the world; `tilted` are large, and `spun` vary over time."""
    batch = len(times)
    axis = rng.standard_normal((batch, 3))
    axis[:, 1] *= np.where(
        rng.random(batch) < 0.7, 0.1, 1
    )  # mostly about a horizontal axis, since cameras are all around
    axis = unit(axis)
    tilted = rng.random(batch) < config.tilted
    angle = np.where(rng.random(batch) < 0.5, rng.normal(0, 0.5, batch), rng.uniform(-np.pi, np.pi, batch))
    angle = np.where(tilted, angle, rng.normal(0, 0.05, batch))
    rate = np.where(rng.random(batch) < config.spun, rng.normal(0, 3, batch), 0)
    angles = angle[:, None] + rate[:, None] * (times - times.mean(axis=1, keepdims=True))
    return rotations.from_vector((angles[..., None] * axis[:, None]).astype(np.float32))


def _some(rng: np.random.Generator, batch: int, share: float) -> I64:
    return np.flatnonzero(rng.random(batch) < share)


def turn(bones: F32, rows: I64, joints: list[int], vector: F32) -> None:
    """Rotate bones (B, T, 19, 3) of some sequences in place by vectors (N, T or 1, 3) rad in the world."""
    at = np.ix_(rows, np.arange(bones.shape[1]), np.array(joints))
    bones[at] = bones[at] @ np.swapaxes(rotations.from_vector(vector), -1, -2)


def _turn_parts(rng: np.random.Generator, bones: F32, times: F64, config: PoseConfig) -> None:
    """Rotate about half of the body's parts by constant and oscillating angles in `turned` sequences, in place."""
    chosen = rng.random(len(bones)) < config.turned
    parts = [(UPPER, config.trunk), (CHEST, config.trunk), (HEAD, config.head)]
    parts += [(leg, config.hip) for leg in LEGS] + [(arm, config.shoulder) for arm in ARMS]
    for joints, degrees in parts:
        rows = np.flatnonzero(chosen & (rng.random(len(bones)) < 0.5))
        if len(rows):
            fixed = rng.standard_normal((len(rows), 1, 3), dtype=np.float32)
            waving = smooth_noise(rng, times[rows], 3, 0.8)
            size = np.float32(np.radians(degrees))
            turn(bones, rows, joints, size * np.tanh(0.4 * fixed + 0.3 * waving))
    for limbs, bend, degrees in ((LEGS, bend_knee, config.knee), (ARMS, bend_elbow, config.elbow)):
        for limb in limbs:
            rows = np.flatnonzero(chosen & (rng.random(len(bones)) < 0.4))
            if len(rows):
                fixed = rng.standard_normal((len(rows), 1), dtype=np.float32)
                waving = smooth_noise(rng, times[rows], 1, 1.0)[..., 0]
                bend(bones, rows, limb, np.float32(np.radians(degrees)) * np.tanh(0.4 * fixed + 0.3 * waving))


def bend_knee(bones: F32, rows: I64, leg: list[int], angle: F32) -> None:
    """Flex a knee further by `angle` (N, T or 1) rad, in place, between straight and 155 degrees."""
    left = pelvis_frame(bones[rows])[..., 0]
    _bend(bones, rows, leg, angle, left, 155)


def bend_elbow(bones: F32, rows: I64, arm: list[int], angle: F32) -> None:
    """Flex an elbow further by `angle` (N, T or 1) rad, in place, between straight and 150 degrees."""
    chest = thorax_frame(bones[rows])
    ahead = chest[..., 2] + np.float32(0.3) * chest[..., 1]  # bending direction of a straight arm: forwards and up
    _bend(bones, rows, arm, angle, cross(bones[rows][:, :, arm[0]], ahead), 150)


def _bend(bones: F32, rows: I64, limb: list[int], angle: F32, default_axis: F32, max_degrees: float) -> None:
    """Flex a limb further by `angle` (rows, T or 1) rad, in place, up to `max_degrees`."""
    first, second = unit(bones[rows][:, :, limb[0]]), unit(bones[rows][:, :, limb[1]])
    axis, bent = _hinge(first, second, default_axis)
    wanted = np.clip(bent + angle, np.minimum(bent, 0), np.maximum(bent, np.radians(max_degrees)))
    turn(bones, rows, limb[1:], axis * (wanted - bent)[..., None].astype(np.float32))


def _hinge(first: F32, second: F32, default_axis: F32) -> tuple[F32, F32]:
    """Return axis (..., 3) and flexion (...,) rad of a hinge; straight limbs get a perpendicular `default_axis`."""
    axis = unit(cross(first, second) + np.float32(0.15) * unit(perpendicular(default_axis, first)))
    axis = unit(perpendicular(axis, first))
    forward = cross(axis, first)
    return axis, np.arctan2(dot(second, forward), dot(second, first))


def _straighten_knees(rng: np.random.Generator, bones: F32, rows: I64) -> None:
    """Reduce the flexion of both knees by up to 45 degrees, in place."""
    # Thighs rotate backwards by half of the reduction, so that the feet stay below the hips.
    amount = rng.uniform(0, np.radians(45), (len(rows), 1)).astype(np.float32)
    left = pelvis_frame(bones[rows])[..., 0]
    for leg in LEGS:
        axis, bent = _hinge(unit(bones[rows][:, :, leg[0]]), unit(bones[rows][:, :, leg[1]]), left)
        less = np.clip(bent, 0, amount)[..., None]
        turn(bones, rows, leg, axis * (np.float32(0.5) * less))
        turn(bones, rows, leg[1:], -axis * less)


def _fold(rng: np.random.Generator, bones: F32, times: F64, rows: I64) -> None:
    """Flex hips and knees and lean the trunk by large angles, constant or varying over time, in place."""
    # Angles are drawn independently. They cover sitting, squatting, kneeling, kicking and touching toes, and poses
    # between these.
    count = len(rows)
    swell = np.clip(0.5 + smooth_noise(rng, times[rows], 1, 0.5), 0, 1)
    swell = np.where(rng.random((count, 1, 1)) < 0.5, 1, swell * swell * (3 - 2 * swell)).astype(np.float32)

    def degrees(low: float, high: float, keep: float = 1.0) -> F32:
        angle = rng.uniform(np.radians(low), np.radians(high), (count, 1, 1))
        result: F32 = (angle * (rng.random((count, 1, 1)) < keep)).astype(np.float32) * swell
        return result

    frame = pelvis_frame(bones[rows])
    left, forward = frame[..., 0], frame[..., 2]
    hip, knee, apart = degrees(0, 115), degrees(0, 130), degrees(-5, 40, 0.5)
    one_sided = rng.random((count, 1, 1)) < 0.3
    for side, leg in enumerate(LEGS):
        active = np.where(one_sided & (rng.random((count, 1, 1)) < 0.5), np.float32(0.15), np.float32(1))
        outward = np.float32(1 if side == 0 else -1)
        turn(bones, rows, leg, (-left * (hip + degrees(-10, 10)) + forward * apart * outward) * active)
        bend_knee(bones, rows, leg, ((knee + degrees(-10, 10)) * active)[..., 0])
    turn(bones, rows, UPPER, left * degrees(-25, 75, 0.5))


def _raise_arm(rng: np.random.Generator, bones: F32, times: F64, rows: I64, arm: list[int]) -> None:
    """Raise an arm in place, with some swaying: over the head in 3 of 4 sequences, otherwise in any direction."""
    now = unit(bones[rows][:, :, arm[0]].mean(axis=1))
    up = unit((bones[rows][:, :, 7] + bones[rows][:, :, 8]).mean(axis=1))
    spread = np.where(rng.random((len(rows), 1)) < 0.75, 0.45, 3.0)
    goal = unit(up + (spread * rng.standard_normal(up.shape)).astype(np.float32))
    share = rng.uniform(0.6, 1, (len(rows), 1, 1)).astype(np.float32)
    sway = np.clip(np.float32(0.85) + np.float32(0.3) * smooth_noise(rng, times[rows], 1, 0.5), 0, np.float32(1.1))
    turn(bones, rows, arm, between(now, goal)[:, None] * share * sway)


def between(start: F32, goal: F32) -> F32:
    """Return rotation vectors (..., 3) rad that turn unit vectors `start` shortest to `goal`, which is not opposite."""
    axis = cross(start, goal)
    sine = norm(axis)
    scale = np.arctan2(sine, dot(start, goal)) / np.maximum(sine, 1e-6)
    return (axis * scale[..., None]).astype(np.float32, copy=False)
