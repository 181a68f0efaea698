"""Surfaces in depth images as points in the 3D view."""

import numpy as np

from pose.results import Recording
from pose.structures.types import F32
from pose.world.measured import DepthImages, scaled_matrix
from pose.world.upright import to_stage

_MAX_POINTS = 60_000
_MAX_STEP_SHARE = 0.05  # of the depth, between neighbouring pixels of one surface
_COLOUR = np.array([0.86, 0.89, 0.94], np.float32)


class DepthCloud:
    """Points of the depth images of a run, in the axes of the 3D view."""

    def __init__(self, depth: DepthImages, table: Recording) -> None:
        """Use depth images of a result with world coordinates."""
        assert table.world_info is not None
        assert table.run is not None
        self._depth, self._table, self._world, self._camera = depth, table, table.world_info.world, table.run.camera
        self._pose = np.eye(4) if depth.extrinsics is None else np.linalg.inv(depth.extrinsics)

    def at(self, position: int) -> tuple[F32, F32]:
        """Return points (N, 3) m and their colours (N, 3), 0 to 1, at the frame with index `position`.

        Raises:
            PoseError: If the depth image is damaged.
        """
        index = self._depth.at(float(self._table.timestamps[position]))
        if index is None:
            return np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)
        image = self._depth.read(index)
        step = max(1, int(np.ceil(np.sqrt(image.size / _MAX_POINTS))))
        matrix, z = scaled_matrix(self._depth, self._camera, image), image[::step, ::step].astype(np.float64)
        v, u = np.mgrid[: image.shape[0] : step, : image.shape[1] : step]
        rays = np.stack([(u - matrix[0, 2]) / matrix[0, 0], (v - matrix[1, 2]) / matrix[1, 1], np.ones(z.shape)], -1)
        points = (rays * z[..., None]) @ self._pose[:3, :3].T + self._pose[:3, 3]
        # Shaded by the normal; pixels beside an edge, some of which fly between two surfaces, are left out.
        across, down = np.gradient(points, axis=1), np.gradient(points, axis=0)
        normal = np.cross(across, down)
        length = np.maximum(np.linalg.norm(normal, axis=-1), 1e-12)
        shade = 0.35 + 0.65 * np.abs((normal * points).sum(axis=-1)) / (
            length * np.linalg.norm(points, axis=-1) + 1e-12
        )
        jump = np.maximum(np.abs(np.gradient(z, axis=0)), np.abs(np.gradient(z, axis=1)))
        kept = (z > 0) & (jump < _MAX_STEP_SHARE * z)
        static = points[kept]
        if (view := self._table.view(position)) is not None:
            static = static @ view.rotation.T + (0.0 if view.position is None else view.position)
        return to_stage(self._world.place(static)), (shade[kept][:, None] * _COLOUR).astype(np.float32)
