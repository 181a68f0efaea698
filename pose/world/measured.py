"""Distances and sizes of people, and the vertical, from depth images beside the colour video.

A lifted pose fits the 2D at any size: joints and root can be multiplied by one factor. The depth images give this
factor for each frame. At the projection of each joint of the trunk, the depth is that of the body's surface, which is
nearer than the joint by a distance that depends on the joint. The median of the ratios of measured and lifted depths
over the joints is robust against holes, edges, and limbs or people in front. Its median over time is the factor of the
person's size, and each frame's ratio gives the distance of the pelvis, with its own sigma.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pose.structures.camera import Camera
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64, FrameResult

# Distance of the joint centre behind the visible surface of an adult, m, by joint.
_SURFACE_M = {
    "pelvis": 0.11, "spine": 0.11, "thorax": 0.10, "neck": 0.06, "head": 0.09, "hip": 0.10, "knee": 0.055,
    "ankle": 0.045, "shoulder": 0.06, "elbow": 0.04, "wrist": 0.03,
}  # fmt: skip
_OFFSETS = np.array([_SURFACE_M[name.split("_")[-1]] for name in H36M17.names])
_USED = np.array([name.split("_")[-1] not in ("wrist", "elbow", "ankle", "head") for name in H36M17.names])
_PATCH_M = 0.025  # half the width of the patch around a joint
_MIN_PATCH_SHARE = 0.4  # of the pixels of a patch that must have a depth
_MAX_EDGE_M = 0.12  # range of depths in a patch, from 10 to 90 %; more is an edge
_MIN_JOINTS = 4
_JOINT_SIGMA_M = 0.03  # of the offset from surface to joint
_MIN_FRAMES = 5
_PLANE_TOLERANCE_M = 0.02
_PLANE_TILT_COSINE = np.cos(np.radians(50))  # the floor's normal is at most this far from the image's vertical
_PLANE_TRIALS = 200
_MAX_PLANES, _PLANE_EVERY = 20, 10  # images in which the floor is searched, and every which of them
_MAX_POINTS = 4000


class DepthImages(Protocol):
    """Depth images with times (see `pose.video.depth.DepthVideo`)."""

    matrix: F64 | None
    size: tuple[int, int] | None
    times: F64

    def read(self, index: int) -> F32:
        """Return image `index` (H, W) in m; 0 where nothing was measured."""

    def at(self, time: float) -> int | None:
        """Return the index of the image at a time in s; None if there is none."""


@dataclass(frozen=True, slots=True)
class Distances:
    """Measured distances of one person, in N frames."""

    times: F64  # (N,) s
    scale: F64  # (N,) factor on the lifted pose
    sigma: F64  # (N,) m, of the depth of the pelvis


@dataclass(frozen=True, slots=True)
class Measured:
    """What depth images say about a run."""

    scales: Mapping[int, float] = field(default_factory=dict)  # factor on the lifted size, by track id
    scale_sigmas: Mapping[int, float] = field(default_factory=dict)  # of the logarithm of these
    distances: Mapping[int, Distances] = field(default_factory=dict)  # by track id
    up: F64 | None = None  # (3,) against gravity, in camera axes; None if no floor was seen


def measure(results: Iterable[FrameResult], depth: DepthImages, camera: Camera) -> Measured:
    """Measure the people of a run in depth images that a static camera recorded.

    Args:
        results: Results of the frames in camera coordinates.
        depth: Depth images from the viewpoint of the camera.
        camera: Camera of the results.
    """
    rows: dict[int, list[tuple[float, float, float]]] = {}
    planes: list[F64] = []
    seen: set[int] = set()
    for result in results:
        index = depth.at(result.time)
        if index is None or not len(result.people):
            continue
        image = depth.read(index)
        matrix = _scaled(depth, camera, image)
        wanted = index not in seen and len(planes) < _MAX_PLANES and len(seen) % _PLANE_EVERY == 0
        if wanted and (normal := floor_normal(image, matrix)) is not None:
            planes.append(normal)
        seen.add(index)
        poses = result.poses
        for number, joints, root in zip(result.people.ids.tolist(), poses.joints, poses.root, strict=True):
            if (found := _ratio(image, matrix, (joints + root).astype(np.float64))) is not None:
                ratio, spread = found
                rows.setdefault(number, []).append((result.time, ratio, spread * float(root[2])))
    up = None
    if len(planes) >= 3 or (planes and len(seen) < 30):
        mean = np.median(planes, axis=0)
        up = mean / np.linalg.norm(mean)
    return _of_rows(rows, up)


def _of_rows(rows: Mapping[int, list[tuple[float, float, float]]], up: F64 | None) -> Measured:
    scales, sigmas, distances = {}, {}, {}
    for number, values in rows.items():
        if len(values) < _MIN_FRAMES:
            continue
        times, ratio, sigma = np.array(values).T
        scales[number] = float(np.median(ratio))
        # Frames share the error of the offset from surface to joint, so their number does not reduce it.
        sigmas[number] = float(np.median(sigma / np.maximum(ratio, 1e-6)) / 3.0) / 2.0
        distances[number] = Distances(times, ratio, sigma)
    return Measured(scales, sigmas, distances, up)


def _scaled(depth: DepthImages, camera: Camera, image: F32) -> F64:
    """Return the camera matrix (3, 3) at the size of a depth image."""
    matrix, size = camera.matrix, camera.size
    if depth.matrix is not None and depth.size is not None:
        matrix, size = depth.matrix, depth.size
    factors = image.shape[1] / size[0], image.shape[0] / size[1]
    result = matrix.copy()
    for axis, factor in enumerate(factors):
        result[axis, :2] *= factor
        # The centre of pixel 0 is at 0, so the edge of the image is at -0.5.
        result[axis, 2] = (matrix[axis, 2] + 0.5) * factor - 0.5
    return result


def _ratio(image: F32, matrix: F64, points: F64) -> tuple[float, float] | None:
    """Return the ratio of measured and lifted depth of a pose (17, 3) m, and its standard deviation; None if unseen."""
    found = []
    for joint in np.flatnonzero(_USED):
        x, y, z = points[joint]
        if z <= 0.2:
            continue
        u, v = matrix[0, 0] * x / z + matrix[0, 2], matrix[1, 1] * y / z + matrix[1, 2]
        surface = _patch(image, u, v, max(1, round(_PATCH_M * matrix[0, 0] / z)))
        if surface is not None:
            found.append((surface + _OFFSETS[joint]) / z)
    if len(found) < _MIN_JOINTS:
        return None
    ratios = np.array(found)
    middle = float(np.median(ratios))
    near = np.abs(ratios / middle - 1) < 0.12  # others are of the background, or of somebody in front
    if near.sum() < _MIN_JOINTS:
        return None
    kept = ratios[near]
    depth = float(np.median(points[_USED, 2])) * middle
    return float(np.median(kept)), float(np.hypot(1.25 * kept.std() / np.sqrt(len(kept)), _JOINT_SIGMA_M / depth / 2))


def _patch(image: F32, u: float, v: float, reach: int) -> float | None:
    """Return the median depth around a pixel; None at holes, edges and outside the image."""
    height, width = image.shape
    column, row = round(u), round(v)
    if not (0 <= column < width and 0 <= row < height):
        return None
    patch = image[max(0, row - reach) : row + reach + 1, max(0, column - reach) : column + reach + 1]
    values = patch[patch > 0]
    if len(values) < max(1, _MIN_PATCH_SHARE * patch.size):
        return None
    low, high = np.percentile(values, (10, 90))
    return float(np.median(values)) if high - low <= _MAX_EDGE_M else None


def floor_normal(image: F32, matrix: F64) -> F64 | None:
    """Return the direction (3,) against gravity of the largest level plane in the lower half; None without one.

    Planes are fitted to random triples of points (RANSAC, Fischler and Bolles, 1981), with the same triples each time.
    """
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(image[image.shape[0] // 2 :] > 0)
    rows = rows + image.shape[0] // 2
    if len(rows) < 200:
        return None
    chosen = rng.choice(len(rows), min(_MAX_POINTS, len(rows)), replace=False)
    v, u = rows[chosen], columns[chosen]
    z = image[v, u].astype(np.float64)
    points = np.stack([(u - matrix[0, 2]) / matrix[0, 0] * z, (v - matrix[1, 2]) / matrix[1, 1] * z, z], axis=1)
    a, b, c = points[rng.integers(0, len(points), (3, _PLANE_TRIALS))]
    normals = np.cross(b - a, c - a)
    length = np.linalg.norm(normals, axis=1)
    normals = normals / np.maximum(length, 1e-9)[:, None]
    normals *= -np.sign(normals[:, 1])[:, None]  # y is down
    level = (length > 1e-3) & (-normals[:, 1] > _PLANE_TILT_COSINE)
    if not level.any():
        return None
    normals, a = normals[level], a[level]
    # Noise grows with distance.
    tolerance = _PLANE_TOLERANCE_M * np.maximum(1.0, z / 2.0)
    off = np.abs(points @ normals.T - (normals * a).sum(axis=1)) < tolerance[:, None]
    best = int(off.sum(axis=0).argmax())
    inside = points[off[:, best]]
    if len(inside) < 0.15 * len(points):
        return None
    _, _, axes = np.linalg.svd(inside - inside.mean(axis=0), full_matrices=False)
    normal: F64 = -axes[2] * np.sign(axes[2, 1])
    return normal
