"""Several cameras as arrays, which transform and project points with all cameras at once.

Axes: C cameras; leading axes of points, such as people and instants, are shown as `...`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pose.multiview.types import MIN_DEPTH_M, ViewCamera
from pose.structures.lenses import Lens
from pose.structures.types import F64


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
        """Project points (..., 3) m in the world, with derivatives.

        Returns:
            Pixels (C, ..., 2) in each camera, and derivatives (C, 2, ..., 3) px/m of pixel x and y with respect to the
            world coordinates of the points.
        """
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
