"""Blend-shape coefficients of faces: how much each of 52 face units moves the points of a face from its neutral one.

Names and meaning are those of Apple's ARKit. The displacements are MakeHuman's face units (CC0), at the 468 points of a
face and at the vertices of the body model. The neutral face of a person is the median of the face over the recording.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pose.body.tracks import Selection
from pose.networks.weights import locate
from pose.structures.face_points import LEFT_EYE, RIGHT_EYE, head_turns
from pose.structures.types import F64, I64, Flags

UNOBSERVED = ("eyeLook", "tongueOut")  # beginnings of the units that 468 points do not show: no irises, no tongue
MAX_NEUTRAL_FACES = 1000  # faces of which the neutral one is the median
DEPTH_WEIGHT = 0.3  # of the depth of the points, which the network knows least
RIDGE = 0.01  # squared eye distances that a unit costs when it is fully used
STEPS = 200  # of the projected gradient method; further ones change coefficients by less than 0.01
_PORTION = 256  # faces in memory at a time
STILL = 0.01  # points that no unit moves by more, in eye distances, show the pose of the head


@dataclass(frozen=True, slots=True)
class FaceUnits:
    """K face units."""

    names: tuple[str, ...]  # (K,) such as 'jawOpen'
    face: F64  # (468, 3) face points of MakeHuman's base mesh, in the same axes and unit
    basis: F64  # (K, 468, 3) displacement of the face points in head axes, in distances of the outer eye corners
    starts: NDArray[np.int32]  # (K + 1,) where the vertices of each unit begin in `vertices` and `offsets`
    vertices: NDArray[np.uint16]  # (N,) indices of the moved vertices of the body model's full mesh
    offsets: F64  # (N, 3) m, their displacements

    @property
    def observed(self) -> Flags:
        """(K,) whether the points of a face show the unit."""
        return np.array([not name.startswith(UNOBSERVED) for name in self.names])

    def moved(self, unit: int) -> tuple[NDArray[np.uint16], F64]:
        """Return the vertices that a unit moves, (n,) in increasing order, and their displacements (n, 3) m."""
        part = slice(int(self.starts[unit]), int(self.starts[unit + 1]))
        return self.vertices[part], self.offsets[part]


@cache
def face_units() -> FaceUnits:
    """Load the face units that the package contains; CorruptWeightError if the hash of the file is wrong."""
    with np.load(locate("face"), allow_pickle=False) as file:
        return FaceUnits(
            tuple(file["names"].tolist()), file["face"].astype(np.float64), file["basis"].astype(np.float64),
            file["morph_starts"], file["morph_vertices"], file["morph_offsets"] * 1e-4,
        )  # fmt: skip


class Expressions:
    """The neutral face of a person, and coefficients against it."""

    def __init__(self, points: NDArray[np.floating]) -> None:
        """Take the neutral face from some faces (T, 468, 3) px of one person."""
        units = face_units()
        self._observed = units.observed
        basis = units.basis[self._observed]
        self._still = np.linalg.norm(basis, axis=-1).max(axis=0) < STILL
        weights = np.array([1.0, 1.0, DEPTH_WEIGHT])
        self._directions = (basis * weights).reshape(len(basis), -1)  # (U, 1404)
        self._weights = weights
        self._neutral = np.median(in_head_axes(points), axis=0)

    def coefficients(self, points: NDArray[np.floating]) -> F64:
        """Return the coefficients (T, 52), 0 to 1, of faces (T, 468, 3) px; NaN for units that points do not show."""
        moved = (self._aligned(in_head_axes(points)) - self._neutral) * self._weights
        result = np.full((len(points), len(self._observed)), np.nan)
        result[:, self._observed] = _bounded_least_squares(self._directions, moved.reshape(len(points), -1))
        return result

    def _aligned(self, faces: F64) -> F64:
        """Align faces (T, 468, 3) to the neutral one by a rotation, translation and scale of the points at rest."""
        goal = self._neutral[self._still]
        own = faces[:, self._still]
        middle, goal_middle = own.mean(axis=1, keepdims=True), goal.mean(axis=0)
        u, sizes, vt = np.linalg.svd(np.einsum("tpi,pj->tij", own - middle, goal - goal_middle))
        sign = np.ones_like(sizes)
        sign[:, 2] = np.sign(np.linalg.det(u) * np.linalg.det(vt))
        rotation = (u * sign[:, None]) @ vt
        scale = (sizes * sign).sum(axis=1) / ((own - middle) ** 2).sum(axis=(1, 2))
        return np.asarray(scale[:, None, None] * ((faces - middle) @ rotation) + goal_middle)


def in_head_axes(points: NDArray[np.floating]) -> F64:
    """Return faces (T, 468, 3) px in axes of the head (left, up, out), in distances of the outer eye corners."""
    centred = np.asarray(points, np.float64) - np.mean(points, axis=1, keepdims=True, dtype=np.float64)
    faces = np.einsum("tji,tpj->tpi", head_turns(points), centred * (1, -1, -1))
    size = np.linalg.norm(faces[:, RIGHT_EYE[0]] - faces[:, LEFT_EYE[0]], axis=-1)
    return np.asarray(faces / np.maximum(size, 1e-9)[:, None, None])


def expressions(recording: Selection, person: int) -> Iterator[tuple[I64, F64]]:
    """Yield rows of the result in which a person's face is detected, and its coefficients (n, 52), in portions."""
    table = recording.table
    if table.face_scores is None or table.face_keypoints is None:
        return
    own = recording.rows_of(person)
    own = own[np.asarray(table.face_scores[own] > 0)]
    if not len(own):
        return
    some = own[np.unique(np.linspace(0, len(own) - 1, min(len(own), MAX_NEUTRAL_FACES)).astype(int))]
    neutral = Expressions(np.asarray(table.face_keypoints[some]))
    for start in range(0, len(own), _PORTION):
        rows = own[start : start + _PORTION]
        yield rows, neutral.coefficients(np.asarray(table.face_keypoints[rows]))


def _bounded_least_squares(directions: F64, moved: F64) -> F64:
    """Return (T, U) in [0, 1] that minimises |c directions - moved|^2 + RIDGE |c|^2 (Nesterov, projected)."""
    normal = directions @ directions.T + RIDGE * np.eye(len(directions))
    goal = moved @ directions.T
    step = 1 / float(np.linalg.eigvalsh(normal)[-1])
    found = ahead = np.zeros_like(goal)
    momentum = 1.0
    for _ in range(STEPS):
        new = np.clip(ahead - step * (ahead @ normal - goal), 0, 1)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / following * (new - found)
        found, momentum = new, following
    return found
