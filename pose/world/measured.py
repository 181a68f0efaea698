"""Distances and sizes of people, and the vertical, from depth images beside the colour video.

A lifted pose fits the 2D at any size: joints and root can be multiplied by one factor. The depth images give this
factor for each frame. At the projection of each joint of the trunk, the depth is that of the body's surface, which is
nearer than the joint by a distance that depends on the joint. The median of the ratios of measured and lifted depths
over the joints is robust against holes, edges, and limbs or people in front. Its median over time is the factor of the
person's size, and each frame's ratio gives the distance of the pelvis, with its own sigma.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from pose.structures.camera import Camera
from pose.structures.odometry import Odometry
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64, I64, Flags, FrameResult
from pose.world.camera_motion.decision import contradicts, device_path
from pose.world.camera_motion.path import CameraPath

# Distance of the joint centre behind the visible surface of an adult, m: seen from the side, and what is added where
# the person faces the camera, or subtracted where the back does. Medians over rendered characters of the body model.
_SURFACE_M = {
    "pelvis": (0.105, 0.015), "spine": (0.095, 0.05), "thorax": (0.055, 0.01), "neck": (0.08, 0.014),
    "head": (0.097, 0.025), "hip": (0.095, 0.01), "knee": (0.056, 0.0), "ankle": (0.044, 0.0), "shoulder": (0.055, 0.0),
}  # fmt: skip
_USED = np.array([at for at, name in enumerate(H36M17.names) if name.split("_")[-1] in _SURFACE_M])
_OFFSETS = np.array([_SURFACE_M[H36M17.names[at].split("_")[-1]] for at in _USED])
_ACROSS = [(H36M17.index(f"left_{name}"), H36M17.index(f"right_{name}")) for name in ("hip", "shoulder")]
_PATCH_M = 0.025  # half the width of the patch around a joint
_MIN_PATCH_SHARE = 0.4  # of the pixels of a patch that must have a depth
_MAX_EDGE_M = 0.12  # range of depths in a patch, from 10 to 90 %; more is an edge
_MIN_JOINTS = 4
_JOINT_SIGMA_M = 0.03  # of the offset from surface to joint
_MIN_FRAMES = 5
_MIN_TILT_REACH_M = 0.7  # height in the image over which joints must be seen to find the tilt
_PLANE_TOLERANCE_M = 0.02
_PLANE_TILT_COSINE = np.cos(np.radians(50))  # the floor's normal is at most this far from the image's vertical
_PLANE_TRIALS = 200
_MAX_PLANES, _PLANE_EVERY = 20, 10  # images in which the floor is searched, and every which of them
_MAX_POINTS = 4000


class DepthImages(Protocol):
    """Depth images with times (see `pose.video.depth.DepthVideo`)."""

    @property
    def matrix(self) -> F64 | None:
        """Camera matrix (3, 3) in px of an image of `size`; None: that of the colour camera."""

    @property
    def size(self) -> tuple[int, int] | None:
        """Width and height in px to which `matrix` belongs."""

    @property
    def extrinsics(self) -> F64 | None:
        """Rigid transformation (4, 4) from the axes of the colour camera to those of the depth camera, in m."""

    @property
    def read(self) -> Callable[[int], F32]:
        """Function that returns image i (H, W) in m, 0 where nothing was measured."""

    @property
    def odometry(self) -> Odometry | None:
        """Path of the colour camera that the device measured; None without."""

    def at(self, time: float) -> int | None:
        """Return the index of the image at a time in s; None if there is none."""


class WornOnBody(Protocol):
    """Inertial sensors on one person (see `pose.lifting.fit.directions.BoneDirections`)."""

    def joints_at(self, times: F64) -> Flags:
        """Return the joints (T, 17) that a sensor measures at times (T,) s."""


@dataclass(frozen=True, slots=True)
class MeasuredPerson:
    """What depth images say about one person, in N frames."""

    scale: float  # factor on the lifted size
    scale_sigma: float  # standard deviation of its logarithm
    tilt: float  # depth in m by which the lifted body must be moved for each m below the pelvis in the image
    times: F64  # (N,) s
    depth: F64  # (N,) m, of the pelvis
    sigma: F64  # (N,) m, of `depth`
    joints: Flags  # (N, 17) whether the depth at the joint agrees with that of the body

    def joints_at(self, times: F64) -> Flags:
        """Return the joints (T, 17) whose depth was measured at times (T,) s."""
        near, known = self._rows(times)
        return np.asarray(self.joints[near] & known[:, None])

    def tilted(self, joints: F64, root: F64) -> F64:
        """Return joints (T, 17, 3) m about the pelvis (T, 3) m, moved along their lines of sight by the tilt."""
        places = joints + root[:, None]
        moved = places[..., 2:] + self.tilt * joints[..., 1:2]
        result: F64 = places * np.maximum(moved / places[..., 2:], 0.1) - root[:, None]
        return result

    def scale_of(self, times: F64, depth: F64) -> float:
        """Return the factor on the size of a body whose pelvis has the depths (T,) m at times (T,) s, from its size."""
        near, known = self._rows(times)
        ratios = self.depth[near[known]] / depth[known]
        return float(np.median(ratios)) if known.any() else self.scale

    def _rows(self, times: F64) -> tuple[I64, Flags]:
        """Return the index (T,) of the measurement nearest to each time, and whether it is of this time."""
        near = np.clip(np.searchsorted(self.times, times - 1e-6), 0, len(self.times) - 1)
        return near, np.asarray(np.abs(self.times[near] - times) < 1e-4)

    def fused(self, times: F64, depth: F64, variance: F64) -> tuple[F64, F64]:
        """Return depths (T,) m and variances: means of estimates and measurements, weighted by their precisions."""
        near, known = self._rows(times)
        weight = np.where(known, 1 / self.sigma[near] ** 2, 0.0)
        total = 1 / variance + weight
        return (depth / variance + weight * self.depth[near]) / total, 1 / total


@dataclass(frozen=True, slots=True)
class Measured:
    """What depth images say about a run."""

    people: Mapping[int, MeasuredPerson] = field(default_factory=dict)  # by track id
    up: F64 | None = None  # (3,) against gravity, in the axes of the camera or its path; None if unknown
    path: CameraPath | None = None  # path of the device; None without
    ignored: bool = False  # whether the path of the device contradicts the floor in the images

    @property
    def line(self) -> str:
        """A line for the summary of the run."""
        floor = "vertical from the floor in them" if self.up is not None else "no floor seen"
        if self.path is not None:
            floor = "camera path and vertical from the device" if self.up is not None else "camera path from the device"
        elif self.ignored:
            floor += "; the floor contradicts the vertical of the device, whose camera path is ignored"
        return f"depth images: {len(self.people)} people measured, {floor}"


def measure(results: Iterable[FrameResult], depth: DepthImages, camera: Camera, times: F64 | None = None) -> Measured:
    """Measure the people of a run in depth images; `times` (F,) s are for the path of the device, if it has one."""
    path, device_up = None, None
    if depth.odometry is not None and times is not None and len(times):
        path, device_up = device_path(depth.odometry, times)
    pose = np.eye(4) if depth.extrinsics is None else depth.extrinsics
    rows: dict[int, list[MeasuredPose]] = {}
    planes: list[F64] = []
    seen: set[int] = set()
    for result in results:
        index = depth.at(result.time)
        if index is None or not len(result.people):
            continue
        image = depth.read(index)
        matrix = scaled_matrix(depth, camera, image)
        wanted = index not in seen and len(planes) < _MAX_PLANES and len(seen) % _PLANE_EVERY == 0
        if wanted and (normal := floor_normal(image, matrix)) is not None:
            turn = np.eye(3) if path is None else path.view(result.time).rotation
            planes.append(turn @ pose[:3, :3].T @ normal)
        seen.add(index)
        for number, one in measure_people(result, image, matrix, pose).items():
            rows.setdefault(number, []).append(one)
    ignored = device_up is not None and contradicts(device_up, planes)
    if ignored:  # their axes are not those of the images; a static camera is as good
        return replace(measure(results, depth, camera), ignored=True)
    up = device_up
    if up is None and (len(planes) >= 3 or (planes and len(seen) < 30)):
        mean = np.median(planes, axis=0)
        up = mean / np.linalg.norm(mean)
    return replace(_of_rows(rows, up), path=path)


class MeasuredPose(NamedTuple):
    """What the depth image of one frame says about one person."""

    time: float  # s
    ratio: float  # of measured and lifted size
    depth: float  # m, of the pelvis
    sigma: float  # m, of `depth`
    tilt: float  # see `MeasuredPerson`; NaN if unknown
    joints: Flags  # (17,) whether the depth at the joint agrees with that of the body


def measure_people(result: FrameResult, image: F32, matrix: F64, pose: F64) -> dict[int, MeasuredPose]:
    """Measure the people of a frame, by track id, in a depth image (H, W) m.

    Args:
        result: Result of the frame in camera coordinates.
        matrix: (3, 3) camera matrix of the image; see `scaled_matrix`.
        pose: (4, 4) from the axes of the colour camera to those of the depth camera.
    """
    measured = {}
    for number, joints, root in zip(result.people.ids.tolist(), result.poses.joints, result.poses.root, strict=True):
        if (found := _ratio(image, matrix, pose, (joints + root).astype(np.float64))) is not None:
            ratio, spread, tilt, used = found
            depth = ratio * float(root[2])
            measured[number] = MeasuredPose(result.time, ratio, depth, spread * depth, tilt, used)
    return measured


def _of_rows(rows: Mapping[int, list[MeasuredPose]], up: F64 | None) -> Measured:
    people = {}
    for number, values in rows.items():
        if len(values) < _MIN_FRAMES:
            continue
        times, ratio, depth, sigma, tilts = np.array([row[:5] for row in values]).T
        joints = np.array([row[5] for row in values])
        known = tilts[np.isfinite(tilts)]
        tilt = float(np.median(known)) if len(known) >= _MIN_FRAMES else 0.0
        # Frames share the error of the offset from surface to joint, so their number does not reduce it.
        spread = float(np.hypot(_JOINT_SIGMA_M / 2 / np.median(depth), 1.25 * ratio.std() / np.sqrt(len(ratio))))
        people[number] = MeasuredPerson(float(np.median(ratio)), spread, tilt, times, depth, sigma, joints)
    return Measured(people, up)


def scaled_matrix(depth: DepthImages, camera: Camera, image: F32) -> F64:
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


def _ratio(image: F32, matrix: F64, pose: F64, points: F64) -> tuple[float, float, float, Flags] | None:
    """Return ratio of measured and lifted size of (17, 3) m, its relative sigma, the tilt or NaN, and joints used."""
    # Seen from another place, where a joint is in the image depends on the size.
    found = _ratio_at(image, matrix, pose, points, 1.0)
    return found if found is None or not pose[:3, 3].any() else _ratio_at(image, matrix, pose, points, found[0])


def _ratio_at(image: F32, matrix: F64, pose: F64, points: F64, size: float) -> tuple[float, float, float, Flags] | None:
    found = []
    turned = points @ pose[:3, :3].T
    across = points[_ACROSS[0][0]] - points[_ACROSS[0][1]] + points[_ACROSS[1][0]] - points[_ACROSS[1][1]]
    facing = float(across[0] / max(np.hypot(across[0], across[2]), 1e-6))  # 1 towards the camera, -1 away from it
    for joint, (middle, front) in zip(_USED, _OFFSETS, strict=True):
        x, y, z = size * turned[joint] + pose[:3, 3]
        if z <= 0.2:
            continue
        u, v = matrix[0, 0] * x / z + matrix[0, 2], matrix[1, 1] * y / z + matrix[1, 2]
        surface = _patch(image, u, v, max(1, round(_PATCH_M * matrix[0, 0] / z)))
        if surface is not None:
            ratio = (surface + middle + facing * front - pose[2, 3]) / turned[joint, 2]
            found.append((ratio, points[joint, 1] - points[0, 1], points[joint, 2], joint))
    if len(found) < _MIN_JOINTS:
        return None
    ratios, below, lifted, joints = np.array(found).T
    middle = float(np.median(ratios))
    near = np.abs(ratios / middle - 1) < 0.12  # others are of the background, or of another person in front
    if near.sum() < _MIN_JOINTS:
        return None
    kept = ratios[near]
    tilt = np.nan
    if np.ptp(below[near]) * middle > _MIN_TILT_REACH_M:
        off = (kept / middle - 1) * lifted[near]
        tilt = float(np.polyfit(below[near], off, 1)[0])
    depth = float(np.median(points[_USED, 2])) * middle
    spread = np.hypot(1.25 * kept.std() / middle / np.sqrt(len(kept)), _JOINT_SIGMA_M / depth / 2)
    used = np.isin(np.arange(len(points)), joints[near])
    return float(np.median(kept)), float(spread), tilt, used


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
