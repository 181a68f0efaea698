"""Depth images with times, camera and, where the device has it, its own path."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pose.structures.camera import Camera
from pose.structures.odometry import Odometry
from pose.structures.types import F32, F64


@dataclass(frozen=True, slots=True)
class DepthVideo:
    """Depth images with times."""

    times: F64  # (N,) s, increasing
    matrix: F64 | None  # (3, 3) camera matrix in px of an image of `size`; None: that of the colour camera
    size: tuple[int, int] | None  # (width, height) in px to which `matrix` belongs
    read: Callable[[int], F32]  # function that returns image i (H, W) in m, 0 where nothing was measured
    # (4, 4) from the axes of the colour camera to those of the depth camera, m; None: the same
    extrinsics: F64 | None = None
    odometry: Odometry | None = None  # path of the colour camera that the device measured; None without
    # colour camera, if the recording describes it and it is not the one of the depth images
    colour: Camera | None = None
    # time of the first colour image on the same clock, s; None: that of the first depth image
    begin: float | None = None

    @property
    def colour_camera(self) -> Camera | None:
        """The colour camera, if the recording describes it."""
        if self.colour is not None or self.matrix is None or self.size is None or self.extrinsics is not None:
            return self.colour
        return Camera(self.matrix, True, self.size)

    def at(self, time: float, tolerance: float = 0.05) -> int | None:
        """Return the index of the image nearest to a time in s; None if none is within the tolerance."""
        after = int(np.searchsorted(self.times, time))
        near = min((i for i in (after - 1, after) if 0 <= i < len(self.times)), key=lambda i: abs(self.times[i] - time))
        return near if abs(self.times[near] - time) <= tolerance else None
