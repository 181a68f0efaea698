"""Tracks of people in several cameras, and the cameras, one by one and as arrays.

Axes: C camera, P person, K knot (instant of the common time line), N point. World: metres, the frame of the first
camera unless a calibration says otherwise. Pixels and camera frames follow the conventions of `pose.structures.types`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pose.structures.camera import Camera
from pose.structures.columns import ColumnSet, column
from pose.structures.lenses import PINHOLE, Lens
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64

# The points that cameras triangulate, as rows of Human3.6M-17: everything that a detector observes directly. Pelvis,
# spine and thorax are means of other joints in a detector's skeleton and would count them twice.
POINTS = np.array([1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14, 15, 16])
POINT_NAMES = tuple(H36M17.names[joint] for joint in POINTS)
HIPS = (POINT_NAMES.index("left_hip"), POINT_NAMES.index("right_hip"))
SHOULDERS = (POINT_NAMES.index("left_shoulder"), POINT_NAMES.index("right_shoulder"))
RADIUS_68 = 1.878  # standard deviations of an axis: the radius that holds 68.27 % of a three-dimensional normal
MIN_DEPTH_M = 0.1  # m; minimum depth for projection
# Points that detectors and Human3.6M define equally, for which lifted positions can be a prior.
LIMB_POINTS = np.array([row for row, name in enumerate(POINT_NAMES) if name not in ("neck", "head")])


@dataclass(frozen=True, slots=True)
class ViewTrack(ColumnSet):
    """One person as tracked by one camera, in T frames."""

    camera: int  # index of the camera
    number: int  # id of the track in that camera
    times: F64 = column("", dtype="<f8")  # (T,) s on the camera's own clock, increasing
    keypoints: F32 = column("", (17, 2))  # (T, 17, 2) px in Human3.6M-17, from `pose.structures.skeletons.to_h36m17`
    scores: F32 = column("", (17,))  # (T, 17), 0 where not detected
    # (T, 17, 3) m, root-relative 3D poses in the camera frame, lifted from this camera's 2D keypoints
    joints: F32 = column("", (17, 3))
    root: F32 = column("", (3,))  # (T, 3) m, position of the root in the camera frame
    # (T, 17) mm, radius around each joint that contains the true joint with a probability of 68 %
    sigma: F32 = column("", (17,))

    def __post_init__(self) -> None:
        self.check_columns()


@dataclass(frozen=True, slots=True, eq=False)
class ViewCamera:
    """One camera of several; common times, of the first camera, are t = (1 + drift) * own time + offset."""

    size: tuple[int, int]  # (width, height) px
    focal: float  # focal length, px; pixels are square
    centre: F64  # (2,) px, the principal point
    rotation: F64  # (3, 3), from the world to the camera frame
    translation: F64  # (3,) m, such that x_camera = rotation @ x_world + translation
    lens: Lens = PINHOLE  # distortion of the lens
    offset: float = 0.0  # clock offset, s
    drift: float = 0.0  # relative difference of the clock rates, s/s
    known: bool = False  # whether the intrinsics are known; otherwise they are assumed

    @classmethod
    def of(cls, camera: Camera) -> "ViewCamera":
        """Return a camera at the origin with the intrinsics of `camera`."""
        focal = math.sqrt(float(camera.matrix[0, 0] * camera.matrix[1, 1]))
        return cls(
            camera.size,
            focal,
            camera.matrix[:2, 2].astype(np.float64),
            np.eye(3),
            np.zeros(3),
            camera.lens,
            known=camera.known,
        )

    @property
    def matrix(self) -> F64:
        """Intrinsic matrix (3, 3), px."""
        return np.array([[self.focal, 0, self.centre[0]], [0, self.focal, self.centre[1]], [0, 0, 1]])

    @property
    def camera(self) -> Camera:
        """Intrinsics and lens."""
        return Camera(self.matrix, self.known, self.size, self.lens)

    @property
    def position(self) -> F64:
        """Optical centre (3,) m in the world."""
        position: F64 = -self.rotation.T @ self.translation
        return position

    def own_time(self, times: F64) -> F64:
        """Convert common times to this camera's clock, s."""
        own: F64 = (times - self.offset) / (1 + self.drift)
        return own

    def common_time(self, own: F64) -> F64:
        """Convert times of this camera's clock to common times, s."""
        times: F64 = own * (1 + self.drift) + self.offset
        return times

    def to_camera(self, points: NDArray[np.floating]) -> F64:
        """Transform points (..., 3) m from the world to the camera frame."""
        moved: F64 = points @ self.rotation.T + self.translation
        return moved

    def to_world(self, points: NDArray[np.floating]) -> F64:
        """Transform points (..., 3) m from the camera frame to the world."""
        moved: F64 = (points - self.translation) @ self.rotation
        return moved

    def unproject(self, pixels: F64) -> F64:
        """Return the rays (..., 2) of pixels (..., 2) in the camera frame, at z = 1, without distortion."""
        return self.camera.unproject(pixels)

    def project(self, points: NDArray[np.floating]) -> F64:
        """Project world points (..., 3) m to (..., 2) px, with distortion; depths are at least `MIN_DEPTH_M`."""
        seen = self.to_camera(points)
        seen[..., 2] = np.maximum(seen[..., 2], MIN_DEPTH_M)
        return self.camera.project(seen)


def relative_cameras(cameras: Sequence[ViewCamera]) -> list[ViewCamera]:
    """Return the cameras in the frame, and on the clock, of the first one; unchanged if that is the world already."""
    base = cameras[0]
    if not (np.any(base.rotation != np.eye(3)) or base.translation.any() or base.offset):
        return list(cameras)
    turns = [camera.rotation @ base.rotation.T for camera in cameras]
    return [
        replace(
            camera,
            rotation=turn,
            translation=camera.translation - turn @ base.translation,
            offset=camera.offset - base.offset,
        )
        for camera, turn in zip(cameras, turns, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Lab:
    """The frame of a calibration file, in the frame of the first camera."""

    axes: F64  # (3, 3), the axes of the file in its columns
    origin: F64  # (3,) m

    def seen_by(self, camera: ViewCamera) -> "Lab":
        """Return this frame in the frame of another camera, whose pose is relative to the first one."""
        return Lab(camera.rotation @ self.axes, camera.to_camera(self.origin))


@dataclass(frozen=True, slots=True, eq=False)
class CameraBatch:
    """Parameters of C cameras, with the conventions of `ViewCamera`."""

    rotations: F64  # (C, 3, 3), from the world to the camera frame
    translations: F64  # (C, 3) m
    focals: F64  # (C,) px
    centres: F64  # (C, 2) px
    lenses: tuple[Lens, ...]  # distortion of each lens

    @classmethod
    def of(cls, cameras: Sequence[ViewCamera]) -> "CameraBatch":
        """Stack the parameters of cameras."""
        return cls(
            np.stack([camera.rotation for camera in cameras]),
            np.stack([camera.translation for camera in cameras]),
            np.array([camera.focal for camera in cameras]),
            np.stack([camera.centre for camera in cameras]),
            tuple(camera.lens for camera in cameras),
        )

    def __len__(self) -> int:
        return len(self.focals)

    def to_world_axes(self, vectors: F64) -> F64:
        """Rotate vectors (C, ..., 3) from each camera's axes to those of the world."""
        turned: F64 = (vectors.reshape(len(self), -1, 3) @ self.rotations).reshape(vectors.shape)
        return turned

    def to_world(self, points: F64) -> F64:
        """Transform points (C, ..., 3) m from each camera's frame to the world."""
        moved = points.reshape(len(self), -1, 3) - self.translations[:, None]
        return self.to_world_axes(moved).reshape(points.shape)

    def project(self, points: F64) -> F64:
        """Project points (..., 3) m in the world to pixels (C, ..., 2), as `ViewCamera.project` does."""
        _, ray, _, factor = self._rays(points)
        pixels: F64 = (self.focals[:, None] * factor)[..., None] * ray + self.centres[:, None]
        return pixels.reshape(len(self), *points.shape[:-1], 2)

    def projected(self, points: F64) -> tuple[F64, F64]:
        """Project world points (..., 3) m to pixels (C, ..., 2), with derivatives (C, 2, ..., 3) px/m."""
        depth, ray, square, factor = self._rays(points)
        focal = self.focals[:, None]
        pixels = (focal * factor)[..., None] * ray + self.centres[:, None]
        slope = np.stack([lens.slope(one) for lens, one in zip(self.lenses, square, strict=True)])
        scale, growth = focal * factor / depth, focal * (2 * slope) / depth
        x, y = ray[..., 0], ray[..., 1]
        by_seen = np.empty((len(self), 2, len(x[0]), 3))  # derivatives by the points in the camera frame
        by_seen[:, 0, :, 0] = scale + growth * x * x
        by_seen[:, 1, :, 1] = scale + growth * y * y
        by_seen[:, 0, :, 1] = by_seen[:, 1, :, 0] = growth * x * y
        by_seen[..., 2] = -(by_seen[..., 0] * x[:, None] + by_seen[..., 1] * y[:, None])
        by_point = by_seen.reshape(len(self), -1, 3) @ self.rotations
        leading = points.shape[:-1]
        return pixels.reshape(len(self), *leading, 2), by_point.reshape(len(self), 2, *leading, 3)

    def _rays(self, points: F64) -> tuple[F64, F64, F64, F64]:
        """Depths (C, M) m of M points, rays (C, M, 2), their squared lengths (C, M), and distortion factors (C, M)."""
        seen = points.reshape(-1, 3) @ np.swapaxes(self.rotations, 1, 2) + self.translations[:, None]
        depth = np.maximum(seen[..., 2], MIN_DEPTH_M)
        ray = seen[..., :2] / depth[..., None]
        square = np.vecdot(ray, ray)
        factor = np.stack([lens.factor(one) for lens, one in zip(self.lenses, square, strict=True)])
        return depth, ray, square, factor
