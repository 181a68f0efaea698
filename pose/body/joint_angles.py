"""Joint angles in degrees from joint positions, with the uncertainty that follows from the joints' sigma.

docs/studies/exports.md defines every angle and its sign. Directions are relative to the pelvis (x to the left, y along
the trunk, z forward) or to the chest (the same axes, from shoulders and thorax):

- hip and shoulder flexion: atan2(forward, down), positive to the front; -180 to 180
- hip and shoulder abduction: asin(outward), positive away from the body; -90 to 90. Close to 90 the flexion is
  undefined and its uncertainty large
- shoulder elevation: between the upper arm and the downward trunk, in any direction; 0 to 180
- knee and elbow flexion: between the two bones, 0 for a straight limb; hyperextension is positive as well
- trunk lean: between the line from pelvis to thorax and the vertical
- neck flexion: atan2(forward, up) of the line from thorax to crown, relative to the chest
- ankle flexion: 0 if the sole is at a right angle to the shank, positive with raised toes. It is known where heel and
  toe are detected in 2D; its standard deviation is a measured constant

Uncertainty is propagated to first order: sigma is the 68 % radius of an isotropic normal distribution, and errors of
different joints are assumed to be independent. Neighbouring joints are in fact correlated; docs/studies/exports.md
reports how often the true angle lies within one standard deviation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pose.body.skeleton import Axes, frame
from pose.structures.rotations import dot
from pose.structures.skeletons import H36M17
from pose.structures.types import F64
from pose.world.foot_points import ANKLE_SD

SIDES = ("left", "right")
NAMES = (
    *(
        f"{side}_{angle}"
        for angle in (
            "hip_flexion", "hip_abduction", "knee_flexion", "shoulder_flexion", "shoulder_abduction",
            "shoulder_elevation", "elbow_flexion",
        )
        for side in SIDES
    ),
    "trunk_lean", "neck_flexion",
)  # fmt: skip
ANKLES = ("left_ankle_flexion", "right_ankle_flexion")
ALL_NAMES = (*NAMES, *ANKLES)
RADIUS_PER_STD = 1.8724  # radius of 68.27 % of an isotropic 3D normal distribution, in standard deviations of an axis

_TINY = 1e-9
# Gradient of an angle with respect to each joint: name of the joint -> (T, 3) rad/m.
Gradient = dict[str, F64]


@dataclass(frozen=True, slots=True)
class Angles:
    """Joint angles of one person in T frames."""

    degrees: F64  # (T, 16), in the order of `NAMES`, or (T, 18), in the order of `ALL_NAMES`; NaN where unknown
    deviations: F64  # standard deviations of `degrees`, in the same shape


def joint_angles(joints: F64, sigma: F64, up: F64) -> Angles:
    """Compute joint angles from positions (T, 17, 3) m in any right-handed system with vertical `up`; NaN stays."""
    values, gradients = _angles_and_gradients(joints, up)
    variance = (sigma / 1000 / RADIUS_PER_STD) ** 2
    deviations = np.empty((len(joints), len(NAMES)))
    for column, name in enumerate(NAMES):
        parts = [dot(g, g) * variance[:, H36M17.index(joint)] for joint, g in gradients[name].items()]
        deviations[:, column] = np.sqrt(np.sum(parts, axis=0))
    # Standard deviations above 180 degrees carry no information.
    return Angles(np.degrees(np.stack([values[n] for n in NAMES], axis=1)), np.minimum(np.degrees(deviations), 180))


def with_ankles(angles: Angles, ankles: F64) -> Angles:
    """Append the ankles' flexion (T, 2) degrees, with its standard deviation as measured in a study."""
    deviations = np.where(np.isfinite(ankles), ANKLE_SD, np.nan)
    return Angles(np.append(angles.degrees, ankles, axis=1), np.append(angles.deviations, deviations, axis=1))


def _angles_and_gradients(joints: F64, up: F64) -> tuple[dict[str, F64], dict[str, Gradient]]:
    """Return every angle in radians, and its gradient with respect to the joint positions, by name of the angle."""

    def vector(start: str, end: str) -> F64:
        return joints[:, H36M17.index(end)] - joints[:, H36M17.index(start)]

    values: dict[str, F64] = {}
    gradients: dict[str, Gradient] = {}
    trunk = vector("pelvis", "thorax")
    for root, upper, middle, lower in (("hip", "hip", "knee", "ankle"), ("shoulder", "shoulder", "elbow", "wrist")):
        across = vector(f"right_{root}", f"left_{root}")
        body = _Frame(across, trunk, (f"right_{root}", f"left_{root}"), ("pelvis", "thorax"))
        for side, outward in zip(SIDES, (1.0, -1.0), strict=True):
            first, second, third = (f"{side}_{joint}" for joint in (upper, middle, lower))
            limb, end = vector(first, second), vector(second, third)
            values[f"{first}_flexion"], gradients[f"{first}_flexion"] = body.flexion(limb, (first, second), -1.0)
            values[f"{first}_abduction"], gradients[f"{first}_abduction"] = body.abduction(
                limb, (first, second), outward
            )
            values[f"{second}_flexion"], gradients[f"{second}_flexion"] = _between(
                limb, end, (first, second), (second, third)
            )
            if root == "shoulder":
                name = f"{side}_shoulder_elevation"
                values[name], gradients[name] = _between(limb, -trunk, (first, second), ("thorax", "pelvis"))
    values["trunk_lean"], gradients["trunk_lean"] = _between(
        trunk, np.broadcast_to(up, trunk.shape), ("pelvis", "thorax"), None
    )
    chest = _Frame(
        vector("right_shoulder", "left_shoulder"), trunk, ("right_shoulder", "left_shoulder"), ("pelvis", "thorax")
    )
    values["neck_flexion"], gradients["neck_flexion"] = chest.flexion(vector("thorax", "head"), ("thorax", "head"), 1.0)
    return values, gradients


def _between(a: F64, b: F64, a_ends: tuple[str, str], b_ends: tuple[str, str] | None) -> tuple[F64, Gradient]:
    """Return the angle (T,) between two vectors (T, 3), 0 to pi rad, and its gradient by the joints at their ends."""
    aa, bb, ab = dot(a, a), dot(b, b), dot(a, b)
    sine = np.sqrt(np.maximum(aa * bb - ab * ab, 0))
    scale = 1 / np.maximum(sine, _TINY)
    grad_a = (ab / np.maximum(aa, _TINY))[:, None] * a - b
    grad_b = (ab / np.maximum(bb, _TINY))[:, None] * b - a
    gradient = _spread(grad_a * scale[:, None], a_ends)
    if b_ends is not None:
        gradient = _added(gradient, _spread(grad_b * scale[:, None], b_ends))
    return np.arctan2(sine, ab), gradient


class _Frame:
    """Axes with derivatives: x along `across` (T, 3), y the part of `up` (T, 3) perpendicular to it, z = x cross y."""

    def __init__(self, across: F64, up: F64, across_ends: tuple[str, str], up_ends: tuple[str, str]) -> None:
        self._axes: Axes = frame(across, up)
        self._ends = across_ends, up_ends
        x, y, _ = self._axes
        self._across = np.maximum(np.sqrt(dot(across, across)), _TINY)  # length of `across`
        self._up = np.maximum(dot(up, y), _TINY)  # length of the component of `up` along y
        self._skew = dot(up, x) / self._up  # component of `up` along x, divided by its length perpendicular to x

    def flexion(self, vector: F64, ends: tuple[str, str], sign: float) -> tuple[F64, Gradient]:
        """Return an angle in the plane of y and z, with its gradient; sign -1 measures from down instead of up."""
        x, y, z = self._within(vector)
        square = np.maximum(y * y + z * z, _TINY**2)
        # d = (up dz - z d(up)) / (up^2 + z^2), with up = sign y
        dy, dz = -sign * z / square, sign * y / square
        return np.arctan2(z, sign * y), self._gradient((np.zeros_like(x), dy, dz), (x, y, z), ends)

    def abduction(self, vector: F64, ends: tuple[str, str], outward: float) -> tuple[F64, Gradient]:
        """Return the angle between a vector and the plane of y and z, with its gradient; outward is the sign of x."""
        x, y, z = self._within(vector)
        square = np.maximum(x * x + y * y + z * z, _TINY**2)
        rest = np.maximum(np.sqrt(y * y + z * z), _TINY)
        sine = np.clip(outward * x / np.sqrt(square), -1, 1)
        d = (outward * rest / square, -outward * x * y / (square * rest), -outward * x * z / (square * rest))
        return np.arcsin(sine), self._gradient(d, (x, y, z), ends)

    def _within(self, vector: F64) -> tuple[F64, F64, F64]:
        x, y, z = (dot(vector, axis) for axis in self._axes)
        return x, y, z

    def _gradient(self, d: tuple[F64, F64, F64], v: tuple[F64, F64, F64], ends: tuple[str, str]) -> Gradient:
        """Return the gradient of a function, given its derivatives `d` by the coordinates `v` of a vector."""
        # A displacement of the vectors `up` and `across` by dup and dacross rotates the frame by w. Its components are
        # w_x = (dup.z - skew dacross.z) / |up|, w_y = -dacross.z / |across| and w_z = dacross.y / |across|. The
        # coordinates v of a constant vector then change by v x w.
        (dx, dy, dz), (x, y, z) = d, v
        about_x, about_y, about_z = dy * z - dz * y, dz * x - dx * z, dx * y - dy * x
        x_axis, y_axis, z_axis = self._axes
        by_vector = dx[:, None] * x_axis + dy[:, None] * y_axis + dz[:, None] * z_axis
        by_up = (about_x / self._up)[:, None] * z_axis
        by_across = (about_z / self._across)[:, None] * y_axis
        by_across -= ((about_y + about_x * self._skew) / self._across)[:, None] * z_axis
        parts = (_spread(by_vector, ends), _spread(by_across, self._ends[0]), _spread(by_up, self._ends[1]))
        return _added(*parts)


def _spread(gradient: F64, ends: tuple[str, str]) -> Gradient:
    """Convert the gradient with respect to a vector between two joints to gradients with respect to the joints."""
    return {ends[0]: -gradient, ends[1]: gradient}


def _added(*gradients: Gradient) -> Gradient:
    total: Gradient = {}
    for gradient in gradients:
        for joint, value in gradient.items():
            total[joint] = total[joint] + value if joint in total else value
    return total


def columns(names: Sequence[str] = ALL_NAMES) -> list[str]:
    """Return the column headings: each angle in degrees, followed by its standard deviation."""
    return [head for name in names for head in (f"{name}_deg", f"{name}_sd")]


@dataclass(frozen=True, slots=True)
class JointAngles:
    """Joint angles of P people in F frames; docs/studies/exports.md defines each.

    Attributes:
        names: (A,) names of the angles.
        degrees: (P, F, A) angles; NaN where a person is missing.
        deviations: (P, F, A) standard deviation of each angle, degrees.
    """

    names: tuple[str, ...]
    degrees: F64
    deviations: F64

    def __getitem__(self, name: str) -> F64:
        """Return the angle with the given name in degrees, (P, F): one row per person and one column per frame.

        Raises:
            KeyError: If the name is unknown.
        """
        if name not in self.names:
            raise KeyError(f"{name!r}; known: {', '.join(self.names)}")
        return self.degrees[..., self.names.index(name)]
